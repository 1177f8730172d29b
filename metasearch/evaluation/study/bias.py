"""Language bias: does a ranking over many languages prefer the question's language?

LAReQA (Roy et al. 2020, section 1, figure 1) calls embeddings *weakly aligned* where wrong candidates in the question's
language are nearer than right ones in another, and shows it by mAP on a pool of all languages beside pools of one.
The difference mixes bias with difficulty, because the larger pool has more distractors. Here the bias of question
language a towards candidate language l is computed from the pooled ranking itself.

Of the top k, a question has c[l] candidates in l, h of them relevant. R[l] of all relevant candidates and N[l] of all
others in the pool are in l, R and N in sum. An unbiased ranker with as many hits takes h of the R and k − h of the N at
random:

- observed o[a, l] = mean over the questions in a of c[l] / k
- expected e[a, l] = mean of (h · R[l] / R + (k − h) · N[l] / N) / k, which is exact, not a limit
- greatest m[a, l] = mean of (min(h, R[l]) + min(k − h, N[l])) / k: as many in l as h leaves room for
- bias[a] = (o[a, a] − e[a, a]) / (m[a, a] − e[a, a]): 0 if the ranker ignores language, 1 if it takes the question's
  language wherever it can, negative if it avoids it.

The excess o − e is divided by m − e, not by 1 − e. Right answers in other languages leave less room for the question's
language, so with 1 − e a better ranker would look less biased. A ranker that always prefers one language has no such
bias, because o − e of a question sums to 0; the matrix o − e shows this preference.

Shapes: N questions, A languages of questions, L languages of candidates, K places of a top.
Arguments that several functions take:

- k: size of the top, at most the pool's
- hits: number of relevant candidates in the top k, h, `(N,)`
- relevant, others: number of relevant and other candidates per language, R[l] and N[l], `(N, L)`
- observed, expected, greatest: the shares o, e and m, `(A, L)`
- own: index of each question language among the candidate languages, −1 if it is missing, `(A,)`
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
    size, depth = len(ranking.languages), min(k, pool)
    of = {language: i for i, language in enumerate(ranking.languages)}
    asked = sorted({question.language for question in ranking.questions})
    groups = np.array([asked.index(question.language) for question in ranking.questions])
    own = np.array([of.get(language, -1) for language in asked])
    spoken = np.array([of[candidate.language] for candidate in ranking.candidates])

    top = counts_by_language(spoken[ranking.top[:, :depth]], size)
    relevant = _sums(counts_by_language(spoken[ranking.relevant][:, None], size), ranking.offsets)
    others = np.bincount(spoken, minlength=size) - relevant
    hits = _sums((ranking.ranks <= depth).astype(np.int64), ranking.offsets)
    observed, expected, greatest = (
        mean_by_language(values, groups, len(asked))
        for values in (
            top / depth,
            expected_shares(hits, relevant, others, depth),
            greatest_shares(hits, relevant, others, depth),
        )
    )
    return float(mean_of_defined(own_bias(observed, expected, greatest, own)))


def _sums(counts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of each question's counts; 0 where no relevant candidate is in the pool."""
    # `reduceat` would give an empty segment its neighbour's value.
    totals = np.concatenate([np.zeros_like(counts[:1], shape=(1, *counts.shape[1:])), counts.cumsum(0)])
    sums: NDArray[np.int64] = np.diff(totals[offsets], axis=0)
    return sums


def mean_of_defined(values: Values) -> Values:
    """Return the mean over the first axis, ignoring NaN; NaN if all are."""
    # `nanmean` warns by `warnings`, which `np.errstate` does not silence.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        means: Values = np.nanmean(values, axis=0)
    return means


def counts_by_language(languages: Counts, size: int) -> Counts:
    """Return candidate counts per language and row, from language indices `(N, K)` → `(N, L)`.

    >>> counts_by_language(np.array([[0, 2, 2]]), 3)
    array([[1, 0, 2]])
    """
    table: Counts = (languages[:, :, None] == np.arange(size)).sum(1)
    return table


def expected_shares(hits: Counts, relevant: Counts, others: Counts, k: int) -> Values:
    """Return e, each language's expected share in the top k without bias, `(N, L)`.

    >>> expected_shares(np.array([1]), np.array([[1, 1]]), np.array([[3, 1]]), 3)   # (1 · 1/2 + 2 · 3/4) / 3
    array([[0.66666667, 0.33333333]])
    """
    # Draws without replacement (hypergeometric): their mean share equals the pool's share.
    shares: Values = (hits[:, None] * _parts(relevant) + (k - hits[:, None]) * _parts(others)) / k
    return shares


def greatest_shares(hits: Counts, relevant: Counts, others: Counts, k: int) -> Values:
    """Return m, each language's largest possible share in the top k with as many hits, `(N, L)`.

    >>> greatest_shares(np.array([1]), np.array([[1, 1]]), np.array([[3, 1]]), 3)   # (1 + 2) / 3, (1 + 1) / 3
    array([[1.        , 0.66666667]])
    """
    shares: Values = (np.minimum(hits[:, None], relevant) + np.minimum(k - hits[:, None], others)) / k
    return shares


def mean_by_language(values: Values, groups: Counts, size: int) -> Values:
    """Return the mean over questions per language, `(N, L)` → `(A, L)`; `groups` are their languages, `(N,)`."""
    member = (groups == np.arange(size)[:, None]).astype(float)
    with np.errstate(invalid="ignore"):
        averages: Values = member @ values / member.sum(1, keepdims=True)
    return averages


def own_bias(observed: Values, expected: Values, greatest: Values, own: Counts) -> Values:
    """Return (o − e) / (m − e) per question language, for the same language, `(A,)`.

    NaN where a language has no candidates, or the top k leaves nothing to choose (m = e): one language alone, or a pool
    that fits into the top k.

    >>> own_bias(np.array([[0.6, 0.4]]), np.array([[0.5, 0.5]]), np.array([[0.9, 0.9]]), np.array([0]))
    array([0.25])
    """
    excess, room = _own_values(observed - expected, own), _own_values(greatest - expected, own)
    shares = np.full(len(own), np.nan)
    # A room of NaN compares as False, so that both undefined cases stay NaN.
    np.divide(excess, room, out=shares, where=room > _NO_ROOM)
    return shares


def _own_values(values: Values, own: Counts) -> Values:
    """Return the value of each question language with itself, `(A, L)` → `(A,)`; NaN where it has no candidates."""
    # An index of −1 reads the last column, whose value `where` replaces.
    return np.where(own < 0, np.nan, values[np.arange(len(own)), own])


def _parts(values: Counts) -> Values:
    """Return a row's values divided by their sum, `(N, L)`; zeros where that is 0."""
    # Of whole numbers a sum below 1 is 0, and then so are the parts.
    parts: Values = values / np.maximum(values.sum(1, keepdims=True), 1)
    return parts
