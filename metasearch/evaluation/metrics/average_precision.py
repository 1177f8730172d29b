"""Average precision from the ranks of what is relevant (LAReQA, section 4; MAML-Align paper, section 5).

AP@k = (1 / min(R, k)) · Σ over relevant items with rank r ≤ k of (relevant items with rank ≤ r) / r, with R the number
of relevant items. Equal scores rank by index, lower first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation.metrics.ranking import above, members


def ranks(scores: NDArray[np.floating], relevant: Sequence[int]) -> NDArray[np.int64]:
    """Return the ranks, from 1, of the relevant items in the ranking by score.

    Args:
        scores: of every candidate, `(C,)`; higher is better, equal scores rank by index.
        relevant: indices of the relevant candidates.

    Returns:
        Ascending ranks, `(R,)`.

    Raises:
        DataError: nothing is relevant, so that no average precision is defined.
        NonFiniteError: a score is NaN or infinite.
    """
    if len(relevant) == 0:
        raise DataError("average precision is undefined: a question has no relevant candidate")
    if not np.isfinite(scores).all():
        raise NonFiniteError("average precision is undefined: a score is not finite")
    columns = np.asarray(relevant, np.int64)
    everything = members(np.zeros(len(scores), np.int64), 1)
    found = above(scores[None], columns, np.array([0, len(columns)]), everything)[:, 0] + 1
    return np.sort(found)


def average_precision(ranks: NDArray[np.int64], k: int | None = None) -> float:
    """Return AP, or AP@k, of one query.

    Args:
        ranks: ascending ranks, from 1, of all relevant items, `(R,)`.
        k: how deep to look; None looks at the whole ranking.

    Example:
        >>> average_precision(np.array([1, 4]))   # (1/1 + 2/4) / 2
        0.75
        >>> average_precision(np.array([1, 4]), k=3)   # (1/1) / min(2, 3)
        0.5
    """
    depth = len(ranks) if k is None else min(len(ranks), k)
    hits = ranks if k is None else ranks[ranks <= k]
    return float(np.sum(np.arange(1, len(hits) + 1) / hits) / depth)


def average_precisions(
    ranks: NDArray[np.int64], offsets: NDArray[np.int64], k: int | None = None
) -> NDArray[np.float64]:
    """Return AP, or AP@k, of many queries, `(N,)`: to the bit what `average_precision` returns for each.

    Args:
        ranks: from 1, ascending within a query, of all that is relevant to it, `(M,)`.
        offsets: query i has the ranks from `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`; at least one.
        k: how deep to look; None looks at the whole ranking.
    """
    sizes = np.diff(offsets)
    depths = sizes if k is None else np.minimum(sizes, k)
    hits = sizes if k is None else np.add.reduceat((ranks <= k).astype(np.int64), offsets[:-1])
    values = np.zeros(len(sizes))
    # Queries with as many hits at once: sums of as many numbers, so that they round as those of one query do.
    for size in np.unique(hits[hits > 0]).tolist():
        mine = np.flatnonzero(hits == size)
        found = ranks[offsets[mine, None] + np.arange(size)]
        values[mine] = np.sum(np.arange(1, size + 1) / found, axis=1) / depths[mine]
    return values
