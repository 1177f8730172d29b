"""Sets of rows of a corpus, as ranges: a choice of hundreds of millions of rows takes a few bytes a range."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


# A set of rows of several parts, a bit for each row: 25 MB for two hundred million.


class Bits:
    """Rows that are numbered over all parts.

    Args:
        sizes: rows of each part.
        full: whether all rows are in the set at first, or none.
    """

    def __init__(self, sizes: Sequence[int], full: bool) -> None:
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._bits = np.full(-(-int(self.starts[-1]) // 8), 0xFF if full else 0, np.uint8)

    def add(self, rows: NDArray[Any]) -> None:
        """Put rows in."""
        # `at`, as several rows share a byte.
        np.bitwise_or.at(self._bits, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))

    def drop(self, rows: NDArray[Any]) -> None:
        """Take rows out."""
        np.bitwise_and.at(self._bits, rows >> 3, ~np.left_shift(1, rows & 7).astype(np.uint8))

    def of(self, part: int) -> NDArray[np.bool_]:
        """Return which rows of a part are in the set."""
        start, end = self.starts[part : part + 2].tolist()
        bits = np.unpackbits(self._bits[start // 8 : -(-end // 8)], bitorder="little")
        found: NDArray[np.bool_] = bits[start % 8 :][: end - start].astype(np.bool_)
        return found


class Ranges:
    """Rows in ascending order, numbered from 0 within the set.

    Args:
        bounds: first row of each range and the one behind its last, ascending and disjoint; empty ones are left out.
    """

    def __init__(self, bounds: Iterable[tuple[int, int]]) -> None:
        found = np.array([bound for bound in bounds if bound[0] < bound[1]], np.int64).reshape(-1, 2)
        self.starts, self.ends = found[:, 0], found[:, 1]
        self._before = np.concatenate([[0], np.cumsum(self.ends - self.starts)])

    def __len__(self) -> int:
        return int(self._before[-1])

    def rows(self, numbers: NDArray[Any]) -> Rows:
        """Return the rows with these numbers within the set."""
        place = np.searchsorted(self._before, numbers, side="right") - 1
        found: Rows = self.starts[place] + numbers - self._before[place]
        return found

    def has(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows are in the set."""
        place = np.searchsorted(self.starts, rows, side="right") - 1
        found: NDArray[np.bool_] = (place >= 0) & (rows < self.ends[place]) if len(self.starts) else rows < rows
        return found

    def without(self, rows: NDArray[Any]) -> "Ranges":
        """Return the set without some rows."""
        out = np.unique(rows[self.has(rows)])
        starts = np.sort(np.concatenate([self.starts, out + 1]))
        # A row that is taken out ends a range, and the next one begins behind it.
        ends = np.sort(np.concatenate([self.ends, out]))
        return Ranges(zip(starts.tolist(), ends.tolist(), strict=True))

    def within(self, start: int, end: int) -> "Ranges":
        """Return the rows of the set from one on and before another."""
        starts, ends = np.clip(self.starts, start, end), np.clip(self.ends, start, end)
        return Ranges(zip(starts.tolist(), ends.tolist(), strict=True))

    def __add__(self, other: "Ranges") -> "Ranges":
        starts, ends = (np.concatenate(both) for both in ((self.starts, other.starts), (self.ends, other.ends)))
        order = np.argsort(starts)
        return Ranges(zip(starts[order].tolist(), ends[order].tolist(), strict=True))
