"""Complete: the share of questions whose relevant candidates are all among the first k.

Complete@k = 1 where every relevant candidate has rank ≤ k, else 0; with R > k it is 0. In a pool of all languages it
asks for the answer in each of them: one translation that ranks low is enough for 0. Hong et al. 2026 (arXiv:2604.05684)
report Complete@10 for pools of two languages, each with an answer.
"""

import numpy as np

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def complete(ranks: Ranks, k: int) -> Values:
    """Return Complete@k of each question, `(N,)`.

    Example:
        >>> complete(Ranks(np.array([1, 3, 2, 9]), np.array([0, 2, 4])), k=3)
        array([1., 0.])
    """
    return np.where(ranks.hits(k) == ranks.sizes, 1.0, 0.0)


METRIC = Metric("retrieval", complete, "required")
