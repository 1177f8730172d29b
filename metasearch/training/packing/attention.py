"""Texts without padding: all tokens in one row, attention within each text.

Everything but attention treats tokens one by one, so a batch can be one row of N tokens. Texts of equal length stand
next to each other, and attention runs over each such run at once: `(count, heads, length, d)`, a view of the row.

Notation used for tensor shapes: N tokens in all, d columns of an attention head.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface

ATTENTION = "metasearch-packed"
"""Name of the attention of packed texts; it is not the model's own, and never set in a model that is saved."""

Spans = tuple[tuple[int, int], ...]
"""Runs of texts of equal length, as (how many, how long)."""


def packed(
    rows: Sequence[NDArray[np.int32]], columns: Sequence[str], first: int, padding: int, at_once: bool = False
) -> dict[str, Any]:
    """Return texts as the features of one row, in order.

    Args:
        rows: tokens of each text, `(columns, length)`.
        columns: what the tokenizer gives for each token; `attention_mask` is not needed.
        first: position of a text's first token.
        padding: number of the padding token.
        at_once: attend to all texts in one call, as suits a device on which each call costs much.

    Returns:
        The features, each `(1, N)`, and what pooling and `attend` need to know.
    """
    lengths = [row.shape[1] for row in rows]
    tokens = np.concatenate(rows, axis=1).astype(np.int64)
    features: dict[str, Any] = {
        name: torch.from_numpy(tokens[i : i + 1]) for i, name in enumerate(columns) if name != "attention_mask"
    }
    positions = [_positions(row[columns.index("input_ids")], first, padding) for row in rows]
    features["position_ids"] = torch.from_numpy(np.concatenate(positions)[None])
    # The names by which the pooling of sentence-transformers knows packed texts.
    features["cu_seq_lens_q"] = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
    features["seq_idx"] = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths)[None])
    features["spans"] = tuple((len(list(run)), length) for length, run in groupby(lengths) if length)
    if at_once:
        inside = np.arange(max(lengths)) < np.array(lengths)[:, None]
        features["inside"] = torch.from_numpy(inside)
        # `flatnonzero` goes row by row, as the tokens stand in the packed row: the n-th place is that of token n.
        features["place"] = torch.from_numpy(np.flatnonzero(inside))
    return features


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

    On a CPU it computes in float32 under autocast: the bfloat16 kernels of attention are slower there, and it is the
    smaller part of the work. Query, key and value are `(1, heads, N, d)`; returns `(1, N, heads, d)`, and None for the
    attention weights. transformers passes the features of `packed` on: `spans`, and to attend to all texts at once
    `inside`, where there is a token when texts stand side by side `(texts, longest)`, and `place`, the number of each
    token among those places `(N,)`. Of a layer with a `sliding_window`,
    tokens see those of their text that are fewer tokens than that away.
    """
    if inside is not None and place is not None:
        return _at_once(query, key, value, dropout, scaling, inside, place, sliding_window), None
    if torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            output = _in_runs(query.float(), key.float(), value.float(), dropout, scaling, spans, sliding_window)
        return output.to(query.dtype), None
    return _in_runs(query, key, value, dropout, scaling, spans, sliding_window), None


def _in_runs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float,
    scaling: float | None,
    spans: Spans,
    window: int | None,
) -> Tensor:
    """Attend in one call per run of texts with equal length; only results are copied."""
    sizes = [count * length for count, length in spans]
    parts = [torch.split(tensor[0], sizes, dim=1) for tensor in (query, key, value)]
    outputs = []
    for (count, length), q, k, v in zip(spans, *parts, strict=True):
        # (heads, count · length, d) → (count, heads, length, d)
        runs = [tensor.unflatten(1, (count, length)).transpose(0, 1) for tensor in (q, k, v)]
        near = _near(length, window, query.device)
        out = F.scaled_dot_product_attention(runs[0], runs[1], runs[2], near, dropout_p=dropout, scale=scaling)
        # (count, heads, length, d) → (count · length, heads, d)
        outputs.append(out.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[None]


def _at_once(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float,
    scaling: float | None,
    inside: Tensor,
    place: Tensor,
    window: int | None,
) -> Tensor:
    """Attend in one call for all texts, put side by side for as long as it takes."""
    # Zeros, not empty memory: a NaN in a masked value would come through the product with its weight 0.
    # `shape[1::2]` is (heads, d).
    rows = [
        tensor.new_zeros(inside.numel(), *tensor.shape[1::2]).index_copy(0, place, tensor[0].transpose(0, 1))
        for tensor in (query, key, value)
    ]
    q, k, v = (tensor.view(*inside.shape, *tensor.shape[1:]).transpose(1, 2) for tensor in rows)
    near, seen = _near(inside.shape[1], window, inside.device), inside[:, None, None]
    out = F.scaled_dot_product_attention(
        q, k, v, seen if near is None else seen & near, dropout_p=dropout, scale=scaling
    )
    return out.transpose(1, 2).flatten(0, 1)[place][None]


def _near(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Return which tokens of a text see each other `(length, length)`; None for all."""
    if window is None or length <= window:
        return None
    places = torch.arange(length, device=device)
    return (places[:, None] - places).abs() < window


def renumber(parts: Sequence[dict[str, Any]], padding: int) -> Tensor:
    """Renumber token ids in all parts to a slice of the embedding matrix, in place; return the slice's rows."""
    words = torch.cat([part["input_ids"].flatten().cpu() for part in parts])
    # Words up to the padding token are always in: it keeps its number, which `padding_idx` and positions depend on.
    rows: Tensor = torch.unique(torch.cat([torch.arange(padding + 1), words]))
    for part in parts:
        # `rows` is sorted and has every word, so the place to insert a word is its index.
        part["input_ids"] = torch.searchsorted(rows, part["input_ids"].cpu())
    return rows


def _positions(ids: NDArray[np.int32], first: int, padding: int) -> NDArray[np.int64]:
    """Return a text's position ids, as its backbone computes them by default."""
    if first == 0:
        return np.arange(len(ids))
    # RoBERTa and its relatives: a padding token within a text stays at the padding index.
    words = ids != padding
    counted: NDArray[np.int64] = np.cumsum(words, dtype=np.int64) * words + first - 1
    return counted


AttentionInterface.register(ATTENTION, attend)
