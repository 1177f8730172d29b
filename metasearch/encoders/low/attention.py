"""Attention within each text of a row of texts, in few calls however many lengths the texts have.

A text is padded to a multiple of `STEP` tokens, whether others are in the batch or not: texts of similar length share
a call, and a vector does not depend on which. Padding gets no weight.

Notation used for tensor shapes: N tokens of all texts, H heads, d dimensions of a head, P padded tokens of all texts
and heads, c texts and heads of one length, L tokens of a padded text.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

STEP = 16
_SCORES = 2**18
"""Scores that are computed at once: with what they are made of they stay in a processor's own cache."""


class Attention:
    """Attention in texts of some lengths, which ascend; all layers of a network share it.

    Args:
        lengths: tokens of each text, at least one.
        heads: H.
        rows: N, and how many rows without a text follow them; they get any values.
        dtype: type of the scores.
    """

    def __init__(self, lengths: Sequence[int], heads: int, rows: int, dtype: torch.dtype = torch.bfloat16) -> None:
        self._heads = heads
        self._calls: list[tuple[slice, int, Tensor | None]] = []
        """Rows of the gathered heads, L, and what is added to their scores."""
        ends = np.cumsum(lengths)
        without = (rows - int(ends[-1])) * heads
        head, first, taken, given = np.arange(heads), 0, [], []
        for size, group in groupby(range(len(lengths)), lambda i: -(-lengths[i] // STEP) * STEP):
            texts = list(group)
            at = np.arange(size)
            inside = at < np.array([lengths[i] for i in texts])[:, None]
            starts = np.array([ends[i] - lengths[i] for i in texts])[:, None]
            # A text's own first token stands for padding, so that no other text can pass on what is not finite.
            tokens = np.where(inside, starts + at, starts)
            taken.append((tokens[:, None] * 3 * heads + head[:, None]).ravel())
            # (texts, L, H) → the row of the token and head among the gathered ones
            place = first + (np.arange(len(texts))[:, None, None] * heads + head) * size + at[:, None]
            given.append(place[inside].ravel())
            count = len(texts) * heads
            self._calls.append((slice(first, first + count * size), size, _masks(inside, heads, dtype)))
            first += count * size
        query = np.concatenate(taken)
        self._taken = torch.from_numpy(np.concatenate([query, query + heads, query + 2 * heads]))
        self._given = torch.from_numpy(np.concatenate([*given, np.zeros(without, np.int64)]))

    def __call__(self, joined: Tensor) -> Tensor:
        """Return `(N, H · d)` for queries, keys and values `(N, 3 · H · d)`; queries are scaled already."""
        width = joined.shape[1] // (3 * self._heads)
        query, key, value = joined.view(-1, width).index_select(0, self._taken).view(3, -1, width)
        found = torch.empty_like(query)
        for rows, size, masks in self._calls:
            # (c · L, d) → (c, L, d)
            q, k, v, out = (each[rows].view(-1, size, width) for each in (query, key, value, found))
            attend_in_parts(q, k, v, masks, out)
        return found.index_select(0, self._given).view(len(joined), -1)


def _masks(inside: NDArray[np.bool_], heads: int, dtype: torch.dtype) -> Tensor | None:
    """Return 0 for tokens of texts and -∞ for padding, `(c, 1, L)`; None without padding."""
    if inside.all():
        return None
    found = torch.where(torch.from_numpy(inside), 0.0, -torch.inf).to(dtype)
    return found.repeat_interleave(heads, 0)[:, None]


def attend_in_parts(query: Tensor, key: Tensor, value: Tensor, masks: Tensor | None, out: Tensor) -> Tensor:
    """Write softmax(Q Kᵀ + masks) V into `out`, all `(c, L, d)`, and return it; the softmax is float32.

    Queries are scaled already; `masks` are `(c, 1, L)` or `(c, L, L)`.
    """
    step = max(1, _SCORES // query.shape[1] ** 2)
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        keys = key[part].transpose(1, 2)
        scores = torch.bmm(query[part], keys) if masks is None else torch.baddbmm(masks[part], query[part], keys)
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(value.dtype)
        torch.bmm(weights, value[part], out=out[part])
    return out
