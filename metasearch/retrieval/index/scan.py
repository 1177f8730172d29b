"""The exact scan: every row of every segment is scored for every query, block by block, on all processors.

Scores are sums of whole numbers, the same bits in whatever blocks, order and number of threads, and on every processor.
Of equal scores the row with the lower number comes first.

Notation used for shapes: n rows, b rows of a block, q queries, D dimensions.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from metasearch.retrieval.index.quantise import Codes, Queries

_CELLS = 2**18
"""Scores of a block: with what they are made of they stay in a processor's own cache."""
_LEAST_ROWS = 2**10
_MOST_ROWS = 2**15
_SPARSE = 4
"""Where fewer than one row of so many is searched, those are copied together first."""

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Places = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Segment and row in it of each row of the index, `(n,)` each."""


@dataclass(frozen=True, eq=False)
class ScanArrays:
    """What is searched of a segment.

    Attributes:
        codes: `(n, D)`.
        steps: `(n,)`.
        rows: number of each row in the index, -1 of a dead one, `(n,)`.
        groups: of rows that are ranked apart: the number of each row's, -1 of one that is not searched, `(n,)`.
    """

    codes: Codes
    steps: NDArray[np.float32]
    rows: NDArray[np.int64]
    groups: NDArray[np.int16]


Score = Callable[[ScanArrays, slice | NDArray[np.int64]], Scores]
"""Scores of some rows of a segment, `(b, q)`."""


class Best:
    """The best rows that were seen, for each of q queries.

    Args:
        queries: q.
        top: how many of each are wanted.
    """

    def __init__(self, queries: int, top: int) -> None:
        self.top = top
        self.scores: list[Scores] = [np.zeros(0, np.float32)] * queries
        self.rows: list[Rows] = [np.zeros(0, np.int64)] * queries
        self._least = np.full(queries, -np.inf, np.float32)

    def add(self, scores: Scores, rows: Rows) -> None:
        """See rows `(b,)` with their scores `(b, q)`."""
        for query, above in enumerate((scores >= self._least).T):
            found = np.flatnonzero(above)
            if len(found):
                self.of_query(query, scores[found, query], rows[found])

    @property
    def whole(self) -> bool:
        """Whether every query has as many rows as are wanted, and their scores are finite."""
        return all(len(own) == self.top and bool(np.isfinite(own).all()) for own in self.scores)

    def of_query(self, query: int, scores: Scores, rows: Rows) -> None:
        """See rows `(b,)` with their scores for one query, `(b,)`."""
        scores, rows = np.concatenate([self.scores[query], scores]), np.concatenate([self.rows[query], rows])
        if len(scores) > self.top:
            least = np.partition(scores, len(scores) - self.top)[len(scores) - self.top]
            # Those that equal the last of the best stay in until their numbers decide.
            kept = scores >= least
            scores, rows, self._least[query] = scores[kept], rows[kept], least
        order = np.lexsort((rows, -scores))[: self.top]
        self.scores[query], self.rows[query] = scores[order], rows[order]


def search_int8(parts: Sequence[ScanArrays], queries: Queries, tops: Sequence[int], threads: int) -> list[Best]:
    """Return the best rows of each group by eight bits a dimension, as many as `tops` says for each."""
    return _scan(parts, _by_eight_bits(queries), len(queries.steps), tops, threads)


def all_scores(parts: Sequence[ScanArrays], queries: Queries, rows: int) -> Scores:
    """Return the scores of all rows by eight bits a dimension, `(n, q)`."""
    score, found = _by_eight_bits(queries), np.zeros((rows, len(queries.steps)), np.float32)
    for part, chosen in chain.from_iterable(_blocks(part, _MOST_ROWS) for part in parts):
        numbers = part.rows[chosen]
        found[numbers[numbers >= 0]] = score(part, chosen)[numbers >= 0]
    return found


def _by_eight_bits(queries: Queries) -> Score:
    multiply = integer_products(queries.halves())

    def score(part: ScanArrays, chosen: slice | NDArray[np.int64]) -> Scores:
        return scores_of(Queries.joined(multiply(part.codes[chosen])), part.steps[chosen], queries.steps)

    return score


def integer_products(halves: Codes) -> Callable[[Codes], NDArray[np.int32]]:
    """Return a function from codes `(b, D)` to their dot products with `halves` `(q, D)`, `(b, q)`.

    NumKong multiplies eight-bit integers; numpy multiplies the same numbers as floats, which takes up to four times as
    long. Both are exact: a product is at most 2¹⁴, so that float32 holds every sum of 2¹⁰ products, float64 any sum.
    """
    if find_spec("numkong") is not None:
        import numkong

        packed = numkong.dots_pack(halves)
        return lambda codes: np.asarray(numkong.dots_packed(codes, packed))
    columns = halves.T.astype(np.float32 if halves.shape[1] <= 2**10 else np.float64)
    return lambda codes: (codes.astype(columns.dtype) @ columns).astype(np.int32)


def scores_of(products: NDArray[np.int32], steps: Scores, of_queries: Scores) -> Scores:
    """Return scores `(b, q)` from dot products of codes and numbers `(b, q)` and the steps of rows and queries."""
    # Element by element, so that it rounds alike wherever a row is.
    scores = products.astype(np.float32)
    # A step may be damaged where nobody compared hashes; who asks refuses scores that are not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        scores *= steps[:, None]
        scores *= of_queries
    return scores


def _scan(parts: Sequence[ScanArrays], score: Score, queries: int, tops: Sequence[int], threads: int) -> list[Best]:
    """Return the best rows of each group by a score, all in one pass; each thread keeps its own until the end."""
    rows = min(max(_CELLS // queries, _LEAST_ROWS), _MOST_ROWS)
    blocks = [block for part in parts for block in _blocks(part, rows)]
    shares = [blocks[len(blocks) * i // threads : len(blocks) * (i + 1) // threads] for i in range(threads)]

    def work(share: Sequence[tuple[ScanArrays, slice | NDArray[np.int64]]]) -> list[Best]:
        best = [Best(queries, top) for top in tops]
        for part, chosen in share:
            scores, numbers, groups = score(part, chosen), part.rows[chosen], part.groups[chosen]
            for group, own in enumerate(best):
                inside = groups == group
                if inside.all():
                    own.add(scores, numbers)
                elif inside.any():
                    own.add(scores[inside], numbers[inside])
        return best

    if threads == 1:
        return work(blocks)
    with ThreadPoolExecutor(threads) as workers:
        found = list(workers.map(work, shares))
    whole = [Best(queries, top) for top in tops]
    for best in found:
        for own, part in zip(whole, best, strict=True):
            for query in range(queries):
                own.of_query(query, part.scores[query], part.rows[query])
    return whole


def _blocks(part: ScanArrays, rows: int) -> list[tuple[ScanArrays, slice | NDArray[np.int64]]]:
    """Return the blocks of a segment: slices, or the numbers of its rows where few are searched."""
    searched = np.flatnonzero(part.groups >= 0)
    if len(searched) * _SPARSE < len(part.rows):
        return [(part, searched[i : i + rows]) for i in range(0, len(searched), rows)]
    return [(part, slice(i, i + rows)) for i in range(0, len(part.rows), rows)]


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
