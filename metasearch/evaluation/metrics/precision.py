"""Precision: the share of the first k candidates that are relevant (Manning et al. 2008, section 8.4).

Precision@k = (relevant candidates with rank ≤ k) / k, also where the pool has fewer than k candidates, as in trec_eval.
"""

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def precision(ranks: Ranks, k: int) -> Values:
    """Return Precision@k of each question, `(N,)`.

    Example:
        >>> import numpy as np
        >>> precision(Ranks(np.array([1, 3, 9]), np.array([0, 3])), k=4)
        array([0.5])
    """
    return ranks.hits(k) / k


METRIC = Metric("retrieval", precision, "required")
