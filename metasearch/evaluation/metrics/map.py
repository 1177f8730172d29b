"""Mean average precision: how high all relevant candidates rank (LAReQA, section 4; MAML-Align paper, section 5).

AP@k = (1 / min(R, k)) · Σ over relevant candidates with rank r ≤ k of (relevant candidates with rank ≤ r) / r, with R
the number of relevant candidates; without a cut-off k is the size of the pool. trec_eval's `map_cut` divides by R also
where R > k, so that its perfect ranking is below 1.
"""

import numpy as np

from metasearch.evaluation.metrics.base import Metric, Ranks, Values


def average_precision(ranks: Ranks, k: int | None = None) -> Values:
    """Return AP, or AP@k, of each question, `(N,)`.

    Example:
        >>> one = Ranks(np.array([1, 4]), np.array([0, 2]))
        >>> average_precision(one)   # (1/1 + 2/4) / 2
        array([0.75])
        >>> average_precision(one, k=3)   # (1/1) / min(2, 3)
        array([0.5])
    """
    depths = ranks.sizes if k is None else np.minimum(ranks.sizes, k)
    hits = ranks.hits(k)
    values = np.zeros(len(hits))
    # Questions with equally many hits at once: numpy's order of summation depends on the length of a row, and a
    # question's value must not depend on the questions beside it.
    for count in np.unique(hits[hits > 0]).tolist():
        questions = np.flatnonzero(hits == count)
        # Ranks ascend: the hits come first, and the i-th of them has i relevant candidates up to its rank.
        top = ranks.ranks[ranks.offsets[questions, None] + np.arange(count)]
        values[questions] = np.sum(np.arange(1, count + 1) / top, axis=1) / depths[questions]
    return values


METRIC = Metric("retrieval", average_precision, "optional")
