"""Vectors as whole numbers, and the exact scan: every row is scored for every query, block by block, on all processors.

A vector has eight bits a dimension and a step, which depend on the vector alone: order and batches change no bits.
Scores are sums of whole numbers, the same bits in whatever blocks, order and number of threads, and on every processor.
Of equal scores the row with the lower number comes first.

Notation used for shapes: n vectors or rows, b rows of a block, q queries, D dimensions.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.search.index.base import Rows, Scores

MOST = 127
"""Greatest code: -128 is not used, so that codes are symmetric."""
_LOW_BITS = 7
_LARGEST_SUM = 2**31 - 1

Codes = NDArray[np.int8]


class Quantised(NamedTuple):
    """Vectors as whole numbers: a vector is about its codes `(n, D)` times its step `(n,)`."""

    codes: Codes
    steps: NDArray[np.float32]

    def take(self, rows: Sequence[int] | slice | Rows) -> NDArray[np.float32]:
        """Return some rows' vectors, `(r, D)`."""
        return np.asarray(self.codes[rows] * self.steps[rows][:, None], np.float32)

    def search(self, groups: "Groups", queries: NDArray[np.float32], tops: Sequence[int], threads: int) -> list["Best"]:
        """Return each group's best rows for queries `(q, D)`, `tops` per group."""
        halves, steps = split_queries(queries)
        multiply, count = integer_products(halves), len(queries)

        def work(blocks: Sequence[_Chosen]) -> list[Best]:
            best = [Best(count, top) for top in tops]
            for chosen in blocks:
                upper, lower = np.hsplit(multiply(self.codes[chosen]), 2)
                # Element by element, so that it rounds alike wherever a row is.
                scores = ((upper << _LOW_BITS) + lower).astype(np.float32)
                scores *= self.steps[chosen][:, None]
                scores *= steps
                own_groups = groups[chosen]
                rows = np.arange(chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
                for group, own in enumerate(best):
                    inside = own_groups == group
                    if inside.all():
                        own.add(scores, rows)
                    elif inside.any():
                        own.add(scores[inside], rows[inside])
            return best

        blocks = _blocks(groups, min(max(_CELLS // count, _LEAST_ROWS), _MOST_ROWS))
        shares = [blocks[i::threads] for i in range(min(threads, len(blocks)))]
        if len(shares) < 2:
            return work(blocks)
        with ThreadPoolExecutor(len(shares)) as workers:
            whole, *others = workers.map(work, shares)
        for best in others:
            for own, part in zip(whole, best, strict=True):
                for query in range(count):
                    own.of_query(query, part.scores[query], part.rows[query])
        return whole

    def score(self, rows: Rows, query: NDArray[np.float32]) -> Scores:
        """Return the scores of some rows for one query `(D,)`, `(r,)`: the bits of `search`."""
        halves, steps = split_queries(query[None])
        upper, lower = integer_products(halves)(self.codes[rows]).T
        scores: Scores = ((upper << _LOW_BITS) + lower).astype(np.float32)
        scores *= self.steps[rows]
        scores *= steps
        return scores


def to_int8(vectors: NDArray[np.float32]) -> Quantised:
    """Return codes `(n, D)` from -127 to 127 and each vector's step `(n,)` for finite vectors `(n, D)`.

    The greatest component of a vector has the code 127 or -127. Steps keep the lengths of vectors, so that a unit
    vector is one after rounding, too. A vector of zeros has the step 0.
    """
    exact = vectors.astype(np.float64)
    largest = np.abs(exact).max(1, initial=0.0, keepdims=True)
    codes = np.rint(exact * (MOST / np.where(largest > 0, largest, 1.0)))
    length = np.sqrt(np.square(codes).sum(1))
    steps = np.sqrt(np.square(exact).sum(1)) / np.where(length > 0, length, 1.0)
    return Quantised(codes.astype(np.int8), steps.astype(np.float32))


def split_queries(vectors: NDArray[np.float32]) -> tuple[Codes, NDArray[np.float32]]:
    """Return finite queries `(q, D)` as 15-bit integers, cut into halves `(2q, D)`, and their steps `(q,)`.

    The upper halves of all queries come before the lower ones. A query is about 128 · upper + lower, times its step. It
    has fewer bits if a dot product would not fit 32 bits.
    """
    # Any dot product with codes is then below 2³¹, whatever the codes are.
    most = min(MOST << _LOW_BITS, _LARGEST_SUM // (MOST * max(vectors.shape[1], 1)))
    exact = vectors.astype(np.float64)
    steps = np.abs(exact).max(1, initial=0.0, keepdims=True) / most
    numbers = np.rint(exact / np.where(steps > 0, steps, 1.0)).astype(np.int32)
    upper = (numbers + (1 << _LOW_BITS >> 1)) >> _LOW_BITS
    halves = np.concatenate([upper, numbers - (upper << _LOW_BITS)]).astype(np.int8)
    return halves, steps[:, 0].astype(np.float32)


_CELLS = 2**18
"""Scores of a block: with what they are made of they stay in a processor's own cache."""
_LEAST_ROWS = 2**10
_MOST_ROWS = 2**15
_SPARSE = 4
"""If fewer than one row in `_SPARSE` is searched, the searched rows are copied together first."""

Groups = NDArray[np.int16]
"""Rows that are ranked apart: the number of each row's group, -1 of a row that is not searched, `(n,)`."""
_Chosen = slice | Rows


class Best:
    """The best rows so far for each of q queries."""

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


def _blocks(groups: Groups, rows: int) -> list[_Chosen]:
    """Return blocks over all rows: slices, or row numbers if few are searched."""
    searched, count = np.flatnonzero(groups >= 0), len(groups)
    if len(searched) * _SPARSE < count:
        return [searched[i : i + rows] for i in range(0, len(searched), rows)]
    return [slice(i, min(i + rows, count)) for i in range(0, count, rows)]
