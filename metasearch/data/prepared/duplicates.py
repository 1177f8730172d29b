"""Finds pairs that stood before by their hashes, a bucket of hashes at a time: memory does not grow with the corpus.

That two of a billion different pairs share 128 bits has a probability of 1.5e-21.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.data.prepared.bits import Bits
from metasearch.data.prepared.blocks import PARTS, Block

_BUCKET = 2**20
"""Hashes of a bucket, about."""


def first_of_each(blocks: Sequence[Block]) -> Bits:
    """Return which pairs have no equal one before them."""
    kept = Bits([block.pairs for block in blocks], full=True)
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
