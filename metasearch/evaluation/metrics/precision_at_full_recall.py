"""Precision at full recall: R / rank of the last relevant candidate, of R (Manning et al. 2008, section 8.4).

It is 1 where nothing else ranks above the last of them, as `iprec_at_recall_1.00` of trec_eval. Hong et al. 2026
(arXiv:2604.05684) report the rank itself, Max@R, of which lower values are better.
"""

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def precision_at_full_recall(ranks: Ranks, k: None = None) -> Values:
    """Return the precision of each question at its last relevant candidate, `(N,)`.

    Example:
        >>> import numpy as np
        >>> precision_at_full_recall(Ranks(np.array([1, 4, 2]), np.array([0, 2, 3])))
        array([0.5, 0.5])
    """
    # Ranks ascend within a question.
    last: Values = ranks.sizes / ranks.ranks[ranks.offsets[1:] - 1]
    return last


METRIC = Metric("retrieval", precision_at_full_recall)
