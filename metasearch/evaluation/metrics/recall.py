"""Recall: the share of the relevant candidates that are among the first k (Manning et al. 2008, section 8.3).

Recall@k = (relevant candidates with rank ≤ k) / R. With R > k it cannot reach 1.
"""

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def recall(ranks: Ranks, k: int) -> Values:
    """Return Recall@k of each question, `(N,)`.

    Example:
        >>> import numpy as np
        >>> recall(Ranks(np.array([1, 3, 9]), np.array([0, 3])), k=3)
        array([0.66666667])
    """
    return ranks.hits(k) / ranks.sizes


METRIC = Metric("retrieval", recall, "required")
