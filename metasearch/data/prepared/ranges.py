"""Sets of rows of a corpus, as ranges: a choice of hundreds of millions of rows takes a few bytes a range."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


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
