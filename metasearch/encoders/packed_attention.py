"""Attention within each of the texts that stand packed in one row, as an attention function for transformers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface

from metasearch.encoders.packed import Spans, attend_in_runs, near

ATTENTION = "metasearch-packed"
"""Name of the attention for packed texts; it is not the model's own, and never set in a model that is saved."""


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    spans: Spans = (),
    inside: Tensor | None = None,
    place: Tensor | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend within each text; an attention function for transformers.

    Query, key and value are `(1, heads, N, d)`; returns `(1, N, heads, d)`, and None for the attention weights. On a
    CPU it computes in float32 under autocast, as bfloat16 attention is slower there. transformers passes on the
    features of `packed`: `spans`, or to attend to all texts at once `inside`, a mask of tokens side by side `(texts,
    longest)`, and `place`, the number of each token there `(N,)`. With a `sliding_window`, tokens see only nearer
    tokens.
    """
    qkv = (query, key, value)
    inner = partial(F.scaled_dot_product_attention, dropout_p=dropout, scale=scaling)
    if inside is not None and place is not None:
        return _at_once(inner, qkv, inside, place, sliding_window), None
    if torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            output = attend_in_runs(inner, [tensor.float() for tensor in qkv], spans, sliding_window)
        return output.to(query.dtype), None
    return attend_in_runs(inner, qkv, spans, sliding_window), None


def _at_once(
    inner: Callable[..., Tensor], qkv: Sequence[Tensor], inside: Tensor, place: Tensor, window: int | None
) -> Tensor:
    """Attend in one call for all texts, put side by side for as long as it takes."""
    # Zeros, not empty memory: a NaN in a masked value would come through the product with its weight 0.
    # `shape[1::2]` is (heads, d).
    rows = [
        tensor.new_zeros(inside.numel(), *tensor.shape[1::2]).index_copy(0, place, tensor[0].transpose(0, 1))
        for tensor in qkv
    ]
    q, k, v = (tensor.view(*inside.shape, *tensor.shape[1:]).transpose(1, 2) for tensor in rows)
    close, seen = near(inside.shape[1], window, inside.device), inside[:, None, None]
    out = inner(q, k, v, seen if close is None else seen & close)
    return out.transpose(1, 2).flatten(0, 1)[place][None]


AttentionInterface.register(ATTENTION, attend)
