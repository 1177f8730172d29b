"""Metrics of the languages of answers, in a pool that has the answer to a question in several languages.

Relevant candidates whose language is unknown, because the pool lacks them, count in neither language. A question
without the candidates that a metric is about has the value NaN, and no share in means.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError
from metasearch.evaluation.metrics.base import NOT_FOUND, Metric, Ranks, Values
from metasearch.evaluation.metrics.retrieval import ndcg, recall


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
