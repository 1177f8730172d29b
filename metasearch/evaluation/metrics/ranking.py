"""Rankings of many queries at once, without sorting them: what ranks above an item, and what ranks highest.

The higher score ranks first, and of equal scores the lower index.

Notation: Q queries, C candidates, M items whose ranks are asked for, those of a query in a row, G groups of candidates,
W words of 64 bits.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]

_CELLS = 2**19
"""Scores that are looked at together, 2 MiB of them: what a core's own cache holds."""
_GROUPS_PER_PLACE = 8
"""Groups of columns for each of the highest places; with more of them fewer scores are left to sort."""


def members(groups: Indices, size: int) -> Words:
    """Return which candidates belong to each group, a bit for each, `(G, W)` words for C bits.

    Args:
        groups: of each candidate, `(C,)`.
        size: G.
    """
    member = _blank(size, len(groups))
    member[:, : len(groups)] = groups == np.arange(size)[:, None]
    return _packed(member)


def above(scores: Scores, columns: Indices, offsets: Indices, groups: Words) -> Indices:
    """Return how many candidates of each group rank above each item, `(M, G)`.

    An item's rank is the number of all that rank above it, plus 1. Nothing is sorted: the scores that are higher are
    counted by the bit, one pass over a query's scores for each of its items.

    Args:
        scores: finite, `(Q, C)`.
        columns: of the items, `(M,)`.
        offsets: query i has the items from `offsets[i]` to `offsets[i + 1]`, `(Q + 1,)`.
        groups: as `members` gives them; together they hold every candidate once.
    """
    counts = np.zeros((len(columns), len(groups)), np.int64)
    # Candidates of a language stand together as a rule, in few of the words.
    spans = [(found[0], found[-1] + 1) if (found := np.flatnonzero(row)).size else (0, 0) for row in groups]
    sizes, width = np.diff(offsets), scores.shape[1]
    for size in np.unique(sizes[sizes > 0]).tolist():
        queries = np.flatnonzero(sizes == size)
        for start, end in blocks(len(queries), size * width, _CELLS):
            rows = _rows(scores, queries[start:end])
            for first, last in blocks(size, len(rows) * width, _CELLS):
                items = offsets[queries[start:end], None] + np.arange(first, last)
                words = _above(rows, columns[items])
                for group, (low, high) in enumerate(spans):
                    inside = words[:, :, low:high] & groups[group, low:high]
                    counts[items, group] = np.bitwise_count(inside).sum(-1, dtype=np.int64)
    return counts


def highest(scores: Scores, k: int) -> Indices:
    """Return the indices of the k highest ranked candidates of each query, the highest first, `(Q, min(k, C))`.

    The k-th highest of the maxima of some groups of columns is no higher than the k-th highest score. So only the few
    scores from there on are sorted.

    Args:
        scores: finite, `(Q, C)`.
        k: how many, at least 1.
    """
    k = min(k, scores.shape[1])
    found = [_highest(scores[start:end], k) for start, end in blocks(len(scores), scores.shape[1], _CELLS)]
    return np.concatenate(found) if found else np.zeros((0, k), np.int64)


def blocks(rows: int, columns: int, cells: int) -> list[tuple[int, int]]:
    """Return starts and ends of blocks of rows, equal in size but for one row, of at most so many cells or one row."""
    count = min(rows, -(-rows * columns // cells))
    bounds = [rows * i // count for i in range(count + 1)] if count else [0]
    return list(pairwise(bounds))


def _rows(scores: Scores, queries: Indices) -> Scores:
    """Return the scores of some queries; without a copy where they follow one another."""
    first, last = int(queries[0]), int(queries[-1])
    return scores[first : last + 1] if last - first < len(queries) else scores[queries]


def _above(scores: Scores, columns: Indices) -> Words:
    """Return which candidates rank above each item, a bit for each.

    Args:
        scores: `(Q, C)`.
        columns: of as many items of each query, `(Q, R)`.

    Returns:
        `(Q, R, W)`.
    """
    limits = np.take_along_axis(scores, columns, axis=1)[:, :, None]
    room = _blank(*columns.shape, scores.shape[1])
    higher, every = room[:, :, : scores.shape[1]], scores[:, None]
    # Equal scores are rare but for that of an item with itself, and where there are none this is quick.
    np.equal(every, limits, out=higher)
    ties = (
        higher & (np.arange(scores.shape[1]) < columns[:, :, None]) if np.count_nonzero(room) > columns.size else None
    )
    np.greater(every, limits, out=higher)
    if ties is not None:
        higher |= ties
    return _packed(room)


def _highest(scores: Scores, k: int) -> Indices:
    rows, size = scores.shape
    groups = min(size, _GROUPS_PER_PLACE * k)
    whole = size // groups * groups
    maxima = scores[:, :whole].reshape(rows, -1, groups).max(axis=1)
    floor = np.partition(maxima, groups - k, axis=1)[:, groups - k]
    of, at = np.divmod(np.flatnonzero(scores >= floor[:, None]), size)
    # Stable: what is equal stays in the order of its indices.
    order = np.lexsort((-scores[of, at], of))
    starts = np.searchsorted(of, np.arange(rows))
    found: Indices = at[order[starts[:, None] + np.arange(k)]]
    return found


def _blank(*shape: int) -> NDArray[np.bool_]:
    """Return room for a flag of each column, and False for the padding that makes them whole words."""
    room = np.empty((*shape[:-1], -(-shape[-1] // 64) * 64), np.bool_)
    room[..., shape[-1] :] = False
    return room


def _packed(flags: NDArray[np.bool_]) -> Words:
    return np.packbits(flags, axis=-1).view(np.uint64)
