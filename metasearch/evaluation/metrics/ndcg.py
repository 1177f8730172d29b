"""Normalised discounted cumulative gain with binary relevance (Järvelin & Kekäläinen 2002, discount log2(1 + rank)).

nDCG@k = DCG@k / IDCG@k, DCG@k = Σ over relevant candidates with rank r ≤ k of 1 / log2(1 + r), and IDCG@k that of the
perfect ranking, whose relevant candidates have the ranks 1 to R. It is trec_eval's `ndcg_cut`, and its `ndcg` where
there is no cut-off.
"""

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def ndcg(ranks: Ranks, k: int | None = None) -> Values:
    """Return nDCG, or nDCG@k, of each question, `(N,)`.

    Example:
        >>> ndcg(Ranks(np.array([1, 3]), np.array([0, 2])), k=2)   # 1 / (1 + 1 / log2(3))
        array([0.61314719])
    """
    # Both sums add as many terms in the same order, so that no rounding takes the quotient above 1.
    return _dcg(ranks.ranks, ranks.offsets, k) / _dcg(ranks.ideal, ranks.offsets, k)


def _dcg(ranks: NDArray[np.int64], offsets: NDArray[np.int64], k: int | None) -> Values:
    gains = 1 / np.log2(1 + ranks)
    total: Values = np.add.reduceat(gains if k is None else np.where(ranks <= k, gains, 0.0), offsets[:-1])
    return total


METRIC = Metric("retrieval", ndcg, "optional")
