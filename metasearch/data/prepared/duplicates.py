"""Finds pairs that stood before by their hashes, a bucket of hashes at a time: memory does not grow with the corpus.

That two of a billion different pairs share 128 bits has a probability of 1.5e-21.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.prepared.blocks import PARTS, Block

_BUCKET = 2**20
"""Hashes of a bucket, about."""


class Kept:
    """Which pairs of the blocks are the first of their kind: a bit for each pair."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._bits = np.full(-(-int(self.starts[-1]) // 8), 0xFF, np.uint8)

    def drop(self, numbers: NDArray[np.int64]) -> None:
        """Take pairs out, by their numbers over all blocks."""
        # `at`, as several pairs share a byte.
        np.bitwise_and.at(self._bits, numbers >> 3, ~np.left_shift(1, numbers & 7).astype(np.uint8))

    def of_block(self, block: int) -> NDArray[np.bool_]:
        """Return which pairs of a block stay."""
        start, end = self.starts[block : block + 2].tolist()
        bits = np.unpackbits(self._bits[start // 8 : -(-end // 8)], bitorder="little")
        found: NDArray[np.bool_] = bits[start % 8 :][: end - start].astype(np.bool_)
        return found


def first_of_each(blocks: Sequence[Block]) -> Kept:
    """Return which pairs have no equal one before them."""
    kept = Kept([block.pairs for block in blocks])
    count = min(PARTS, -(-int(kept.starts[-1]) // _BUCKET))
    for bucket in range(count):
        first, last = (PARTS * edge // count for edge in (bucket, bucket + 1))
        found = [block.hashes(first, last) for block in blocks]
        numbers = [own + start for (_, own), start in zip(found, kept.starts.tolist(), strict=False)]
        kept.drop(_later(np.concatenate([hashes for hashes, _ in found]), np.concatenate(numbers)))
    return kept


def _later(hashes: NDArray[np.uint64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the pairs whose hash one with a lower number has."""
    order = np.lexsort((numbers, hashes[:, 1], hashes[:, 0]))
    found = hashes[order]
    same = (found[1:] == found[:-1]).all(1)
    later: NDArray[np.int64] = numbers[order][1:][same]
    return later
