"""A set of rows of several parts, a bit for each row: 25 MB for two hundred million."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
