"""Norm and clipping of dense and sparse gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor


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
