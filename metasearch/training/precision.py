"""The error of the outer gradient in half precision."""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.learners.base import Learner
from metasearch.learners.gradients import Gradients
from metasearch.training.gradients import norm_of

log = logging.getLogger(__name__)


def log_bf16_error(learner: Learner, episodes: Sequence[Episode], gradients: Gradients) -> None:
    """Log how far off the outer gradient in bfloat16 is."""
    error = bf16_error(learner, episodes, gradients)
    log.info("bf16: the first outer gradient is off by %.1e of its length, against float32", error)


def bf16_error(learner: Learner, episodes: Sequence[Episode], gradients: Gradients) -> float:
    """Return ‖difference‖₂ / ‖gradient‖₂ of the outer gradients in bfloat16 and in float32, without dropout.

    Args:
        learner: the learner; its parameters are left without a gradient.
        episodes: a meta-batch.
        gradients: how outer gradients are taken.
    """
    learner.train(False)
    exact, rounded = (_gradient(learner, episodes, gradients, bf16) for bf16 in (False, True))
    off = _norm([a - b for a, b in zip(exact, rounded, strict=True)])
    return (off / _norm(exact)).item()


def _gradient(learner: Learner, episodes: Sequence[Episode], gradients: Gradients, bf16: bool) -> list[Tensor]:
    parameters = [parameter for _, parameter in learner.named_parameters()]
    with torch.autocast(learner.encoder.device.type, torch.bfloat16, enabled=bf16):
        gradients(learner, episodes)
    gradient = [parameter.grad for parameter in parameters if parameter.grad is not None]
    for parameter in parameters:
        parameter.grad = None
    return gradient


def _norm(tensors: Sequence[Tensor]) -> Tensor:
    return norm_of([tensor.coalesce().values() if tensor.is_sparse else tensor for tensor in tensors])
