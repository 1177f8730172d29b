"""Ranks without sorting: what ranks above an item, and what ranks highest, of many queries at once.

The higher score ranks first, and of equal scores the lower index. A sort of every row would take several times as long
as the matrix product that gives the scores; a rank only needs the number of higher scores.

Notation: Q queries, C candidates, M items whose ranks are asked for, those of a query in a row, R items of one query,
G groups of candidates, W words of 64 bits.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]

_CELLS = 2**19
"""Scores that are compared at once, 2 MiB of them: what a core's own cache holds."""
_GROUPS_PER_PLACE = 8
"""Groups of columns for each of the highest places; with more of them fewer scores are left to sort."""


def members(groups: Indices, size: int) -> Words:
    """Return which candidates are in each group, a bit for each: `(C,)` group numbers below G (`size`) → `(G, W)`."""
    member = _padded(size, len(groups))
    member[:, : len(groups)] = groups == np.arange(size)[:, None]
    return _packed(member)


def above(scores: Scores, columns: Indices, offsets: Indices, groups: Words) -> Indices:
    """Return how many candidates of each group rank above each item, `(M, G)`.

    The rank of an item is the sum of its row, plus 1.

    Args:
        scores: finite scores of the candidates for each query, `(Q, C)`.
        columns: indices of the items, `(M,)`.
        offsets: query i has the items from `offsets[i]` to `offsets[i + 1]`, `(Q + 1,)`.
        groups: membership as `members` returns it; every candidate is in one group.
    """
    counts = np.zeros((len(columns), len(groups)), np.int64)
    spans = [_span(row) for row in groups]
    sizes, width = np.diff(offsets), scores.shape[1]
    # Queries with equally many items make a rectangle `(Q, R)`, which numpy compares in one call. Blocks of it stay in
    # the cache between the comparison and the counting, which is where the time goes.
    for size in np.unique(sizes[sizes > 0]).tolist():
        queries = np.flatnonzero(sizes == size)
        for start, end in blocks(len(queries), size * width, _CELLS):
            rows = _rows(scores, queries[start:end])
            # A single query with many items may exceed a block, too; then its items are cut.
            for first, last in blocks(size, len(rows) * width, _CELLS):
                items = offsets[queries[start:end], None] + np.arange(first, last)
                words = _above(rows, columns[items])
                # One comparison serves all groups: a group's count is that of the bits it shares with the result.
                for group, (low, high) in enumerate(spans):
                    inside = words[:, :, low:high] & groups[group, low:high]
                    counts[items, group] = np.bitwise_count(inside).sum(-1, dtype=np.int64)
    return counts


def highest(scores: Scores, k: int) -> Indices:
    """Return the indices of the k ≥ 1 highest ranked candidates of each query, the highest first, `(Q, min(k, C))`."""
    k = min(k, scores.shape[1])
    parts = [_highest(scores[start:end], k) for start, end in blocks(len(scores), scores.shape[1], _CELLS)]
    # The empty part gives the result its shape where there are no queries.
    return np.concatenate([np.zeros((0, k), np.int64), *parts])


def first_equal(vectors: NDArray[np.floating]) -> Indices:
    """Return the index of the first vector that equals each one, `(N, D)` → `(N,)`.

    A matrix product may round two equal columns differently, so that ties between equal vectors must be made.
    """
    # Keyed by bytes, one pass finds all equal rows; rows that differ in the sign of a zero count as different.
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(vector.tobytes(), i) for i, vector in enumerate(vectors)], np.int64)


def blocks(rows: int, columns: int, cells: int) -> list[tuple[int, int]]:
    """Return starts and ends of blocks of rows, equal but for one row: so many cells at most on average, or one row."""
    # Ceiling division: the fewest blocks, cut evenly so that no small one is left at the end.
    count = min(rows, -(-rows * columns // cells))
    bounds = [rows * i // count for i in range(count + 1)] if count else [0]
    return list(pairwise(bounds))


def _span(member: Words) -> tuple[int, int]:
    """Return the first and last word with a member of a group; a language's candidates are few words in a row."""
    words = np.flatnonzero(member)
    return (int(words[0]), int(words[-1]) + 1) if words.size else (0, 0)


def _rows(scores: Scores, queries: Indices) -> Scores:
    """Return the scores of some queries; without a copy where they follow one another."""
    first, last = int(queries[0]), int(queries[-1])
    return scores[first : last + 1] if last - first < len(queries) else scores[queries]


def _above(scores: Scores, columns: Indices) -> Words:
    """Return which candidates rank above each item, a bit for each: `(Q, C)` and `(Q, R)` → `(Q, R, W)`."""
    limits = np.take_along_axis(scores, columns, axis=1)[:, :, None]
    flags = _padded(*columns.shape, scores.shape[1])
    # `higher` is a view of the flags: comparisons write straight into what is packed.
    higher, candidates = flags[:, :, : scores.shape[1]], scores[:, None]
    # Each item equals itself. Only where there are further ties, which is rare, is it worth looking which come before.
    np.equal(candidates, limits, out=higher)
    tied = np.count_nonzero(flags) > columns.size
    # Of equal scores the lower index ranks first. Taken now, since `higher` is overwritten next.
    before = higher & (np.arange(scores.shape[1]) < columns[:, :, None]) if tied else None
    np.greater(candidates, limits, out=higher)
    if before is not None:
        higher |= before
    return _packed(flags)


def _highest(scores: Scores, k: int) -> Indices:
    """Return the k highest of each query, by sorting only the few scores that can be among them.

    Columns are dealt into groups. The k highest group maxima are k scores of the row, so that the k-th highest score is
    no lower than the k-th highest maximum: what is below that floor is out.
    """
    rows, size = scores.shape
    groups = min(size, _GROUPS_PER_PLACE * k)
    # Columns beyond the last whole group enter no maximum: the floor is only a bound, and they are compared with it.
    whole = size // groups * groups
    # Dealt like cards: the maximum over the middle axis works on contiguous runs of `groups` columns.
    maxima = scores[:, :whole].reshape(rows, -1, groups).max(axis=1)
    floor = np.partition(maxima, groups - k, axis=1)[:, groups - k]
    query, column = np.divmod(np.flatnonzero(scores >= floor[:, None]), size)
    # Stable, by query and then by score: equal scores stay in the order of their indices.
    order = np.lexsort((-scores[query, column], query))
    # The order moves scores within a query only, so these starts hold; at least k scores of each query reach the floor.
    starts = np.searchsorted(query, np.arange(rows))
    top: Indices = column[order[starts[:, None] + np.arange(k)]]
    return top


def _padded(*shape: int) -> NDArray[np.bool_]:
    """Return room for a flag of each column, and False for the padding that makes them whole words."""
    flags = np.empty((*shape[:-1], -(-shape[-1] // 64) * 64), np.bool_)
    flags[..., shape[-1] :] = False
    return flags


def _packed(flags: NDArray[np.bool_]) -> Words:
    # The order of the bits in a word is irrelevant: all flags are packed alike, and bits are only counted.
    return np.packbits(flags, axis=-1).view(np.uint64)
