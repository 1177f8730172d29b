"""Mean reciprocal rank: how high the first relevant candidate ranks (Voorhees 1999, "The TREC-8 QA track report").

RR@k = 1 / r with r the rank of the first relevant candidate, 0 where r > k; without a cut-off the whole ranking counts.
"""

import numpy as np

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def reciprocal_rank(ranks: Ranks, k: int | None = None) -> Values:
    """Return RR, or RR@k, of each question, `(N,)`.

    Example:
        >>> two = Ranks(np.array([2, 3, 5]), np.array([0, 2, 3]))
        >>> reciprocal_rank(two, k=4)   # 1/2; 5 > 4
        array([0.5, 0. ])
    """
    # Ranks ascend within a question and none is empty: the entry at its offset is its best rank.
    first = ranks.ranks[ranks.offsets[:-1]]
    return np.where(ranks.hits(k) > 0, 1 / first, 0.0)


METRIC = Metric("retrieval", reciprocal_rank, "optional")
