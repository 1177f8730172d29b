"""Retrieval metrics, computed from the ranks of relevant candidates per question."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError
from metasearch.evaluation.metrics.base import NOT_FOUND, Metric, Ranks, Values


def average_precision(ranks: Ranks, k: int | None = None) -> Values:
    """Return AP, or AP@k, per question, `(N,)`.

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


METRIC_MAP = Metric("retrieval", average_precision, "optional")
"""Mean average precision: how high all relevant candidates rank (LAReQA, section 4; MAML-Align paper, section 5).

AP@k = (1 / min(R, k)) · Σ over relevant candidates with rank r ≤ k of (relevant candidates with rank ≤ r) / r, with R
the number of relevant candidates; without a cut-off k is the size of the pool. trec_eval's `map_cut` divides by R also
where R > k, so that its perfect ranking is below 1.
"""


def reciprocal_rank(ranks: Ranks, k: int | None = None) -> Values:
    """Return RR, or RR@k, per question, `(N,)`.

    Example:
        >>> two = Ranks(np.array([2, 3, 5]), np.array([0, 2, 3]))
        >>> reciprocal_rank(two, k=4)   # 1/2; 5 > 4
        array([0.5, 0. ])
    """
    return np.where(ranks.hits(k) > 0, 1 / ranks.first, 0.0)


METRIC_MRR = Metric("retrieval", reciprocal_rank, "optional")
"""Mean reciprocal rank: how high the first relevant candidate ranks (Voorhees 1999, "The TREC-8 QA track report").

RR@k = 1 / r with r the rank of the first relevant candidate, 0 where r > k; without a cut-off the whole ranking counts.
"""


def ndcg(ranks: Ranks, k: int | None = None) -> Values:
    """Return nDCG, or nDCG@k, of each question, `(N,)`; with gains where relevance is graded.

    Example:
        >>> ndcg(Ranks(np.array([1, 3]), np.array([0, 2])), k=2)   # 1 / (1 + 1 / log2(3))
        array([0.61314719])
        >>> ndcg(Ranks(np.array([1, 3]), np.array([0, 2]), np.array([1.0, 2.0])))   # (1 + 2/2) / (2 + 1 / log2(3))
        array([0.76018753])
    """
    gains, ideal = ranks.gains, ranks.gains
    if gains is not None:
        owners = np.repeat(np.arange(len(ranks.sizes)), ranks.sizes)
        # Only quotients of gains count. A power of two changes no digit, and no sum overflows.
        gains = np.ldexp(gains, -np.frexp(np.maximum.reduceat(gains, ranks.offsets[:-1]))[1][owners])
        ideal = gains[np.lexsort((-gains, owners))]  # the greatest of each question come first in its perfect ranking
    best = _dcg(ranks.ideal, ranks.offsets, ranks.ideal <= (k or len(ranks.ranks)), ideal)
    # Different orders of almost equal gains may round to a quotient just above 1.
    return np.minimum(_dcg(ranks.ranks, ranks.offsets, ranks.within(k), gains) / best, 1.0)


def _dcg(
    ranks: NDArray[np.int64], offsets: NDArray[np.int64], within: NDArray[np.bool_], gains: Values | None
) -> Values:
    terms = (1 if gains is None else gains) / np.log2(1 + ranks)
    total: Values = np.add.reduceat(np.where(within, terms, 0.0), offsets[:-1])
    return total


METRIC_NDCG = Metric("retrieval", ndcg, "optional")
"""Normalised discounted cumulative gain (Järvelin & Kekäläinen 2002, discount log2(1 + rank)).

nDCG@k = DCG@k / IDCG@k, DCG@k = Σ over relevant candidates with rank r ≤ k of g / log2(1 + r), with gain g the graded
relevance, which is 1 where labels have no grades; IDCG@k is the DCG@k of the perfect ranking, whose relevant candidates
have the ranks 1 to R, the greatest gains first. It is trec_eval's `ndcg_cut`, and its `ndcg` without a cut-off.
"""


def precision(ranks: Ranks, k: int) -> Values:
    """Return Precision@k per question, `(N,)`.

    Example:
        >>> precision(Ranks(np.array([1, 3, 9]), np.array([0, 3])), k=4)
        array([0.5])
    """
    return ranks.hits(k) / k


METRIC_PRECISION = Metric("retrieval", precision, "required")
"""Precision: the share of the first k candidates that are relevant (Manning et al. 2008, section 8.4).

Precision@k = (relevant candidates with rank ≤ k) / k, also where the pool has fewer than k candidates, as in trec_eval.
"""


def recall(ranks: Ranks, k: int) -> Values:
    """Return Recall@k per question, `(N,)`.

    Example:
        >>> recall(Ranks(np.array([1, 3, 9]), np.array([0, 3])), k=3)
        array([0.66666667])
    """
    return ranks.hits(k) / ranks.sizes


METRIC_RECALL = Metric("retrieval", recall, "required")
"""Recall: the share of the relevant candidates that are among the first k (Manning et al. 2008, section 8.3).

Recall@k = (relevant candidates with rank ≤ k) / R. With R > k it cannot reach 1.
"""


def complete(ranks: Ranks, k: int) -> Values:
    """Return Complete@k per question, `(N,)`.

    Example:
        >>> complete(Ranks(np.array([1, 3, 2, 9]), np.array([0, 2, 4])), k=3)
        array([1., 0.])
    """
    return np.where(ranks.hits(k) == ranks.sizes, 1.0, 0.0)


METRIC_COMPLETE = Metric("retrieval", complete, "required")
"""Complete: the share of questions whose relevant candidates are all among the first k.

Complete@k = 1 where every relevant candidate has rank ≤ k, else 0; with R > k it is 0. In a pool of all languages it
asks for the answer in each of them: one translation that ranks low is enough for 0. Hong et al. 2026 (arXiv:2604.05684)
report Complete@10 for pools of two languages, each with an answer.
"""


# Languages of answers, in a pool that has the answer to a question in several languages. Relevant candidates whose
# language is unknown, because the pool lacks them, count in neither language. A question without the candidates that a
# metric is about has the value NaN, and no share in means.


def own_ndcg(ranks: Ranks, k: int | None = None) -> Values:
    """Return nDCG, or nDCG@k, of the relevant candidates in the language of each question, `(N,)`.

    Example:
        >>> ranks = Ranks(np.array([1, 3, 5]), np.array([0, 3]), own=np.array([False, True, False]))
        >>> own_ndcg(ranks, k=20)   # (1 / log2(4)) / (1 / log2(2))
        array([0.5])
    """
    return _of_part(ndcg, ranks, _own(ranks), k)


METRIC_OWN_NDCG = Metric("retrieval", own_ndcg, "optional", languages=True)
"""Own-language nDCG: how high the relevant candidates in the language of the question rank among all.

As `ndcg`, where relevant candidates in other languages have gain 0. They keep their places in the ranking. The ideal
ranking has those in the language of the question alone. Undefined for a question without any.
"""


def others_recall(ranks: Ranks, k: int) -> Values:
    """Return Recall@k of the relevant candidates in other languages than the question, `(N,)`.

    Example:
        >>> ranks = Ranks(np.array([1, 3, 5]), np.array([0, 3]), own=np.array([False, True, False]))
        >>> others_recall(ranks, k=3)   # 1 of ranks 1 and 5
        array([0.5])
    """
    return _of_part(recall, ranks, ~_own(ranks) & (ranks.ranks < NOT_FOUND), k)


METRIC_OTHERS_RECALL = Metric("retrieval", others_recall, "required", languages=True)
"""Recall of other languages: the share of the relevant candidates in them that are among the first k.

Undefined for a question whose relevant candidates are all in its own language.
"""


def best_own(ranks: Ranks, k: int | None = None) -> Values:
    """Return 1 where the best relevant candidate is in the language of the question, else 0, `(N,)`.

    Example:
        >>> best_own(Ranks(np.array([1, 3, 5]), np.array([0, 3]), own=np.array([False, True, False])))
        array([0.])
    """
    best = _own(ranks)[ranks.offsets[:-1]]
    return np.where(ranks.first < NOT_FOUND, np.where(best, 1.0, 0.0), np.nan)


METRIC_BEST_OWN = Metric("retrieval", best_own, languages=True)
"""Best in own language: how often the relevant candidate with the best rank is in the language of the question.

An encoder that ignores languages has 1 / L where each of L languages has one relevant candidate. Undefined for a
question without a relevant candidate in the pool.
"""


def worst_rank(ranks: Ranks, k: int | None = None) -> Values:
    """Return the worst rank of the relevant candidates of each question, `(N,)`.

    Example:
        >>> worst_rank(Ranks(np.array([1, 3, 5]), np.array([0, 3])))
        array([5.])
    """
    part, questions = ranks.part(ranks.within(None))
    values = np.full(len(ranks.sizes), np.nan)
    values[questions] = part.ranks[part.offsets[1:] - 1]
    return values


METRIC_WORST_RANK = Metric("retrieval", worst_rank, languages=True, unit="rank")
"""Worst rank: how far a reader scrolls until all relevant candidates of the pool have come; lower is better."""


def first_hit(ranks: Ranks, k: int | None = None, *, relevant: bool, own: bool) -> Values:
    """Return 1 where the first candidate is (not) relevant and (not) in the language of the question, `(N,)`.

    Example:
        >>> ranks = Ranks(np.array([1, 2]), np.array([0, 1, 2]), None, np.array([True, True]), np.array([True, False]))
        >>> first_hit(ranks, relevant=False, own=False)
        array([0., 1.])
    """
    if ranks.first_own is None:
        raise DataError(_UNKNOWN)
    return np.where(((ranks.first == 1) == relevant) & (ranks.first_own == own), 1.0, 0.0)


METRIC_FIRST_RELEVANT_OWN = Metric("retrieval", partial(first_hit, relevant=True, own=True), languages=True)
"""First hit: the share of first candidates that are relevant and in the language of the question."""

METRIC_FIRST_RELEVANT_OTHER = Metric("retrieval", partial(first_hit, relevant=True, own=False), languages=True)
"""First hit: the share of first candidates that are relevant and in another language."""

METRIC_FIRST_IRRELEVANT_OWN = Metric("retrieval", partial(first_hit, relevant=False, own=True), languages=True)
"""First hit: the share of first candidates that are irrelevant and in the language of the question."""

METRIC_FIRST_IRRELEVANT_OTHER = Metric("retrieval", partial(first_hit, relevant=False, own=False), languages=True)
"""First hit: the share of first candidates that are irrelevant and in another language."""

_UNKNOWN = "the ranks have no languages: this metric needs a pool of several languages"


def _own(ranks: Ranks) -> NDArray[np.bool_]:
    if ranks.own is None:
        raise DataError(_UNKNOWN)
    return ranks.own


def _of_part(function: Callable[..., Values], ranks: Ranks, chosen: NDArray[np.bool_], k: int | None) -> Values:
    """Return a metric of the chosen relevant candidates at their ranks; NaN for a question without any."""
    part, questions = ranks.part(chosen)
    values = np.full(len(ranks.sizes), np.nan)
    if len(questions):
        values[questions] = function(part, k)
    return values
