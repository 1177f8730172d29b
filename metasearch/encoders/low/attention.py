"""Attention in a row of texts, in few calls however many lengths the texts have.

A text is padded to a multiple of `STEP` tokens, whether others are in the batch or not: texts of similar length share
a call, and what a text attends to does not depend on which. Padding gets no weight.

Notation used for tensor shapes: N tokens of all texts, H heads, d dimensions of a head, P padded tokens of all texts,
B texts of one length, L tokens of a padded text.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

STEP = 16


class Attention:
    """Attention in texts of some lengths, which ascend; all layers of a network share it.

    Args:
        lengths: tokens of each text, at least one.
        heads: H.
        rows: N, and how many rows without a text follow them; they get any values.
        dtype: type of queries, keys and values.
    """

    def __init__(self, lengths: Sequence[int], heads: int, rows: int, dtype: torch.dtype = torch.bfloat16) -> None:
        self._heads = heads
        self._calls: list[tuple[slice, int, Tensor | None]] = []
        """Padded tokens, L, and what is added to their scores."""
        ends = np.cumsum(lengths)
        first, taken, given = 0, [], []
        for size, group in groupby(range(len(lengths)), lambda i: -(-lengths[i] // STEP) * STEP):
            texts = list(group)
            at = np.arange(size)
            inside = at < np.array([lengths[i] for i in texts])[:, None]
            starts = np.array([ends[i] - lengths[i] for i in texts])[:, None]
            # A text's own first token stands for padding, so that no other text can pass on what is not finite.
            taken.append(np.where(inside, starts + at, starts).ravel())
            given.append(first + np.flatnonzero(inside))
            self._calls.append((slice(first, first + inside.size), size, _mask(inside, dtype)))
            first += inside.size
        self._taken = torch.from_numpy(np.concatenate(taken))
        self._given = torch.from_numpy(np.concatenate([*given, np.zeros(rows - int(ends[-1]), np.int64)]))

    def __call__(self, joined: Tensor) -> Tensor:
        """Return `(N, H · d)` for queries, keys and values `(N, 3 · H · d)`; queries are scaled already."""
        # (P, 3, H, d)
        padded = joined.index_select(0, self._taken).view(len(self._taken), 3, self._heads, -1)
        found = []
        for rows, size, mask in self._calls:
            # (B · L, 3, H, d) → (3, B, H, L, d)
            query, key, value = padded[rows].view(-1, size, *padded.shape[1:]).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)
            found.append(out.transpose(1, 2).flatten(2).flatten(0, 1))
        return torch.cat(found).index_select(0, self._given)


def _mask(inside: NDArray[np.bool_], dtype: torch.dtype) -> Tensor | None:
    """Return 0 for tokens of texts and -∞ for padding, `(B, 1, 1, L)`; None without padding."""
    return None if inside.all() else torch.where(torch.from_numpy(inside), 0.0, -torch.inf).to(dtype)[:, None, None]
