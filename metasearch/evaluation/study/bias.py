"""Language bias: does a ranking over many languages prefer the question's language?

LAReQA (Roy et al. 2020, section 1, figure 1) calls embeddings *weakly aligned* where wrong candidates in the question's
language are nearer than right ones in another, and shows it by mAP on a pool of all languages beside pools of one.
The difference mixes bias with difficulty, because the larger pool has more distractors. Here the bias of a language is
computed from the pooled ranking itself.

Of the top k of a question, c candidates are in its language, and h are relevant. In the pool are R relevant candidates
and N others, of which r and n are in its language. An unbiased ranker with as many hits takes h of the R and k − h of
the N at random:

- observed o = c / k
- expected e = (h · r / R + (k − h) · n / N) / k, which is exact, not a limit
- greatest m = (min(h, r) + min(k − h, n)) / k: as many in the language as h leaves room for
- bias of a language = (o − e) / (m − e), each the mean over its questions: 0 if the ranker ignores language, 1 if it
  takes the question's language wherever it can, negative if it avoids it.

The excess o − e is divided by m − e, not by 1 − e. Right answers in other languages leave less room for the question's
language, so with 1 − e a better ranker would look less biased. A ranker that always prefers one language has no such
bias: what its questions exceed, the questions in other languages lack.

Shapes: N questions, A languages of questions. Arguments that several functions take, `(N,)`:

- k: size of the top, at most the pool's; a number
- hits: number of relevant candidates in the top k, h
- relevant, others: number of relevant and of other candidates in the language of the question, r and n
"""

import warnings

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError
from metasearch.evaluation.study.study import Arm, Study
from metasearch.runs.per_query_results import DEPTH, Ranking

Counts = NDArray[np.int64]
Values = NDArray[np.float64]

_NO_ROOM = 1e-12
"""What rounding leaves of m − e = 0."""


def measure_arm_bias(study: Study, arm: Arm) -> tuple[float, float | None, int] | None:
    """Return the language bias of an arm: mean and sample standard deviation over folds, and number of folds.

    Seeds are averaged within a fold. The mean is NaN where no fold has a defined value, and the deviation None for one
    fold. None without rankings.
    """
    folds: dict[int, list[float]] = {}
    for scored in study.of(arm):
        if ranking := scored.questions.ranking:
            folds.setdefault(scored.fold, []).append(measure_ranking_bias(ranking))
    if not folds:
        return None
    values = np.array([mean_of_defined(np.array(seeds)) for seeds in folds.values()])
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return float(mean_of_defined(values)), spread, len(values)


def measure_ranking_bias(ranking: Ranking, k: int = DEPTH) -> float:
    """Return the language bias in a ranking's top k, the mean over question languages with a defined value, or NaN.

    0 is no bias, 1 where the own language is taken wherever that is possible. Shares use the whole pool if it is
    smaller.
    """
    pool, deepest = len(ranking.candidates), ranking.top.shape[1]
    if k < 1 or deepest < min(k, pool):
        raise ConfigError(f"language bias in the top {k}: k must be from 1 to {deepest}")
    depth = min(k, pool)
    languages = [each.language for each in (*ranking.questions, *ranking.candidates)]
    asked, spoken = np.split(np.unique(languages, return_inverse=True)[1], [len(ranking.questions)])
    counts = np.diff(ranking.offsets)
    hits = _sums(ranking.ranks <= depth, ranking.offsets)
    relevant = _sums(spoken[ranking.relevant] == np.repeat(asked, counts), ranking.offsets)
    others = np.bincount(spoken, minlength=asked.max() + 1)[asked] - relevant
    observed = (spoken[ranking.top[:, :depth]] == asked[:, None]).mean(1)
    expected = expected_shares(hits, relevant, others, counts, pool, depth)
    greatest = greatest_shares(hits, relevant, others, depth)
    return float(mean_of_defined(own_bias(observed, expected, greatest, asked)))


def _sums(values: NDArray[np.bool_], offsets: Counts) -> Counts:
    """Return how many values of each question hold; 0 where no relevant candidate is in the pool."""
    # `reduceat` would give an empty segment its neighbour's value.
    sums: Counts = np.diff(np.concatenate([[0], values.cumsum()])[offsets])
    return sums


def mean_of_defined(values: Values) -> Values:
    """Return the mean over the first axis, ignoring NaN; NaN if all are."""
    # `nanmean` warns by `warnings`, which `np.errstate` does not silence.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        means: Values = np.nanmean(values, axis=0)
    return means


def expected_shares(hits: Counts, relevant: Counts, others: Counts, all_relevant: Counts, pool: int, k: int) -> Values:
    """Return e, the expected share of a question's language in the top k without bias, `(N,)`.

    `all_relevant` are R, and `pool` is R + N, the number of candidates.

    >>> one = np.array([1])
    >>> expected_shares(one, one, 3 * one, 2 * one, 6, 3)   # (1 · 1/2 + 2 · 3/4) / 3
    array([0.66666667])
    """
    # Draws without replacement (hypergeometric): their mean share equals the pool's share. Where R or N is 0, so is r
    # or n.
    shares: Values = hits * (relevant / np.maximum(all_relevant, 1))
    shares = shares + (k - hits) * (others / np.maximum(pool - all_relevant, 1))
    return shares / k


def greatest_shares(hits: Counts, relevant: Counts, others: Counts, k: int) -> Values:
    """Return m, the largest possible share of a question's language in the top k with as many hits, `(N,)`.

    >>> greatest_shares(np.array([1]), np.array([1]), np.array([3]), 3)   # (1 + 2) / 3
    array([1.])
    """
    shares: Values = (np.minimum(hits, relevant) + np.minimum(k - hits, others)) / k
    return shares


def own_bias(observed: Values, expected: Values, greatest: Values, asked: Counts) -> Values:
    """Return the bias of each question language, `(A,)`, from the shares and the language of each question, `(N,)`.

    NaN where a language has no candidates, or the top k leaves nothing to choose (m = e): one language alone, or a pool
    that fits into the top k.

    >>> own_bias(np.array([0.6]), np.array([0.5]), np.array([0.9]), np.array([0]))
    array([0.25])
    """
    member = (asked == np.unique(asked)[:, None]).astype(float)
    o, e, m = (member @ np.stack([observed, expected, greatest], axis=1) / member.sum(1, keepdims=True)).T
    biases = np.full(len(member), np.nan)
    np.divide(o - e, m - e, out=biases, where=m - e > _NO_ROOM)
    return biases
