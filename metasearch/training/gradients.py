"""Gradients, dense or of rows: their length, how it is cut, and their error in half precision."""

from collections.abc import Sequence

import torch
from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.learners.base import Learner
from metasearch.learners.gradients import Gradients


def rows_or_all(parameter: Tensor) -> Tensor:
    """Return a parameter's gradient, or of a sparse one the rows that it has, in the same memory."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()  # as it is already, unless two were added on a GPU
    return parameter.grad.values()


def norm_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return the Euclidean norm of dense tensors together."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]))
    return norm


def clip(tensors: list[Tensor], longest: float, norm: Tensor) -> None:
    """Scale tensors of this norm down to the longest one allowed (torch's `clip_grads_with_norm_` takes dense ones)."""
    # 1e-6 as in torch. Multiplied where the factor is 1, too: to ask for it first would wait for the GPU.
    torch._foreach_mul_(tensors, torch.clamp(longest / (norm + 1e-6), max=1.0))


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
