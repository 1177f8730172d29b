"""Average precision from the ranks of what is relevant (LAReQA, section 4; MAML-Align paper, section 5).

AP@k = (1 / min(R, k)) · Σ over relevant items with rank r ≤ k of (relevant items with rank ≤ r) / r, with R the number
of relevant items. Equal scores rank by index, lower first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, NonFiniteError


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
    index = np.arange(len(scores))
    found = [np.sum((scores > scores[i]) | ((scores == scores[i]) & (index <= i))) for i in relevant]
    return np.sort(np.asarray(found, dtype=np.int64))


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
