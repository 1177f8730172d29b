"""Gradients, dense or of rows: their length, and how it is cut."""

from collections.abc import Sequence

import torch
from torch import Tensor


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
    torch._foreach_mul_(tensors, torch.clamp(longest / (norm + 1e-6), max=1.0))
