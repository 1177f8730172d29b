"""Rotary positions in float64, for tests of gradients that are exact."""

import torch
from torch import Tensor
from transformers.models.modernbert import modeling_modernbert
from transformers.models.modernbert.modeling_modernbert import rotate_half


def rotate_in_float64() -> None:
    """Let ModernBERT turn queries and keys in float64 where they are; it is not put back, as nothing else changes."""
    modeling_modernbert.apply_rotary_pos_emb = _rotated


def _rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Turn queries and keys as transformers does, which rounds what is float64, gradients too, to float32.

    So sums of gradients and gradients of sums differ by 1e-8 there, whatever computes them.
    """
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    turned = []
    for each in (query, key):
        wide = each.to(torch.promote_types(each.dtype, torch.float32))
        turned.append((wide * cos + rotate_half(wide) * sin).to(each.dtype))
    return turned[0], turned[1]
