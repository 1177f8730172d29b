"""The error of the outer gradient in half precision."""

from collections.abc import Sequence

import torch
from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.learners.base import Learner
from metasearch.learners.gradients import Gradients
from metasearch.training.gradients import norm_of


def bf16_error(learner: Learner, episodes: Sequence[Episode], gradients: Gradients) -> float:
    """Return ‖difference‖₂ / ‖gradient‖₂ of the outer gradients of a meta-batch in bfloat16 and in float32.

    Dropout is off; the learner's parameters are left without a gradient.
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
