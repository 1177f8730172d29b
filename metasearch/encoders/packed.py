"""Texts as features in one row, without padding.

Everything but attention treats tokens one by one, and attention runs within each text.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


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
