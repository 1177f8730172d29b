"""Batches of texts with similar length."""

from collections.abc import Iterator
from math import ceil

import numpy as np
from numpy.typing import NDArray

BATCH_TOKENS = 1024
"""Tokens of a batch on a CPU, padding included: what passes between layers then stays in its caches."""

GPU_BATCH_TOKENS = 16_384
"""The same on a GPU, where a batch costs as much time to launch as to compute if it is smaller."""
GPU_BATCH_TEXTS = 1024
"""Texts of a batch on a GPU, at most."""


def batches(lengths: NDArray[np.int64], most: int, tokens: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield start and end of batches for texts sorted by descending length.

    Args:
        lengths: tokens of each text, the longest first.
        most: texts in a batch at most.
        tokens: tokens in a batch, padding included, as far as one text has no more; None sets no limit.
    """
    # A batch begins at every multiple of `most`, so that to encode so many texts at a time changes no batch.
    for start in range(0, len(lengths), most):
        count = min(most, len(lengths) - start)
        parts = ceil(count * max(lengths[start], 1) / tokens) if tokens else 1
        size = ceil(count / parts)
        yield from ((start + i, start + min(i + size, count)) for i in range(0, count, size))
