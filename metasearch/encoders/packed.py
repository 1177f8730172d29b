"""Texts as features in one row, without padding.

Everything but attention treats tokens one by one, and attention runs within each text.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Spans = Sequence[tuple[int, int]]
"""Runs of equally long texts, as (how many, how long)."""


def packed(
    rows: Sequence[NDArray[np.int32]], columns: Sequence[str], first: int, padding: int, at_once: bool = False
) -> dict[str, Any]:
    """Return texts `(columns, length)` as features in one row `(1, N)`, in order.

    `first` is the position of a text's first token, `padding` the number of the padding token. `at_once` attends to all
    texts in one call, which suits a GPU.
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


def _positions(ids: NDArray[np.int32], first: int, padding: int) -> NDArray[np.int64]:
    """Return a text's position ids, as its backbone computes them by default."""
    if first == 0:
        return np.arange(len(ids))
    # RoBERTa and its relatives: a padding token within a text stays at the padding index.
    words = ids != padding
    counted: NDArray[np.int64] = np.cumsum(words, dtype=np.int64) * words + first - 1
    return counted


def attend_in_runs(
    attend: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor],
    qkv: Sequence[Tensor],
    spans: Spans,
    window: int | None,
) -> Tensor:
    """Attend within each text of a row, in one call per run of texts with equal length.

    Queries, keys and values are `(1, heads, N, d)`, for `attend` `(count, heads, length, d)` with `near`. Returns
    `(1, N, heads, d)`.
    """
    sizes = [count * length for count, length in spans]
    outputs = []
    parts = [torch.split(tensor[0], sizes, dim=1) for tensor in qkv]
    for (count, length), *run in zip(spans, *parts, strict=True):
        # (heads, count · length, d) → (count, heads, length, d)
        q, k, v = (tensor.unflatten(1, (count, length)).transpose(0, 1) for tensor in run)
        out = attend(q, k, v, near(length, window, q.device))
        # (count, heads, length, d) → (count · length, heads, d)
        outputs.append(out.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[None]


def near(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Return which tokens of a text see each other `(length, length)`; None for all."""
    if window is None or length <= window:
        return None
    places = torch.arange(length, device=device)
    return (places[:, None] - places).abs() < window
