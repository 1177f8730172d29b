"""Dense and sparse gradients: norm, clipping, and half-precision error."""

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metasearch.algorithms.base import Learner, OuterLoss
from metasearch.episodes.episode import Episode
from metasearch.errors import OutOfMemory
from metasearch.training.outer_gradients import OuterGradients

log = logging.getLogger(__name__)


def rows_or_all(parameter: Tensor) -> Tensor:
    """Return a parameter's gradient, or the rows of a sparse one, in the same memory."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()  # as it is already, unless two were added on a GPU
    return parameter.grad.values()


def norm_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return the joint Euclidean norm of dense tensors."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]))
    return norm


def clip(tensors: list[Tensor], longest: float, norm: Tensor) -> None:
    """Scale tensors of this norm down to the longest one allowed (torch's `clip_grads_with_norm_` takes dense ones)."""
    # 1e-6 as in torch. Multiplied where the factor is 1, too: to ask for it first would wait for the GPU.
    torch._foreach_mul_(tensors, torch.clamp(longest / (norm + 1e-6), max=1.0))


Take = Callable[[Learner, Sequence[Episode]], OuterLoss]


def log_bf16_error(
    learner: Learner, episodes: Sequence[Episode], take: Take, gradients: OuterGradients, alone: bool = True
) -> None:
    """Log the error of the outer gradient in bfloat16, or that float32 does not fit into memory.

    Args:
        learner: as it begins.
        episodes: the meta-batch.
        take: takes an outer gradient.
        gradients: what it uses; what they do with less memory, so that float32 fits, is forgotten.
        alone: whether no other process takes part, which would wait for this one.

    Raises:
        OutOfMemory: float32 does not fit, and others take part.
    """
    try:
        with gradients.trial():
            error = f"off by {bf16_error(learner, episodes, take):.1e} of its length, against float32"
    except OutOfMemory:
        if not alone:
            raise
        for _, parameter in learner.named_parameters():
            parameter.grad = None
        error = "not compared with float32, in which the step does not fit the memory"
    log.info("bf16: the first outer gradient is %s", error)


def bf16_error(learner: Learner, episodes: Sequence[Episode], take: Take) -> float:
    """Return ‖difference‖₂ / ‖gradient‖₂ between outer gradients in bfloat16 and float32.

    Dropout is off; the learner's parameters are left without a gradient.
    """
    learner.train(False)
    exact, rounded = (_gradient(learner, episodes, take, bf16) for bf16 in (False, True))
    off = _norm([a - b for a, b in zip(exact, rounded, strict=True)])
    return (off / _norm(exact)).item()


def _gradient(learner: Learner, episodes: Sequence[Episode], take: Take, bf16: bool) -> list[Tensor]:
    parameters = [parameter for _, parameter in learner.named_parameters()]
    with torch.autocast(learner.encoder.device.type, torch.bfloat16, enabled=bf16):
        take(learner, episodes)
    gradient = [parameter.grad for parameter in parameters if parameter.grad is not None]
    for parameter in parameters:
        parameter.grad = None
    return gradient


def _norm(tensors: Sequence[Tensor]) -> Tensor:
    return norm_of([tensor.coalesce().values() if tensor.is_sparse else tensor for tensor in tensors])
