"""Language bias in the rankings of finished runs, and agreement between translations (`statistics.language_bias`)."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError
from metasearch.evaluation.statistics import language_bias
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.study import Scored, Study
from metasearch.runs.per_query_results import DEPTH, Ranking

Values = NDArray[np.float64]


class BiasFigures(NamedTuple):
    """Language bias in figures, each the mean over the question languages with a defined value, or NaN.

    Attributes:
        bias: (o − e) / (m − e): 0 without bias, 1 where the own language is taken wherever that is possible.
        correlation: rank correlation between the top k of a question and its translations.
    """

    bias: float
    correlation: float


class ArmBias(NamedTuple):
    """Language bias of an arm: the mean over `folds`, and its sample standard deviation; None for a single fold."""

    figures: BiasFigures
    spread: BiasFigures | None
    folds: int


def measure_bias(scored: Scored) -> BiasFigures | None:
    """Return the language bias of an arm on a fold with a seed; None where no multilingual pool was ranked."""
    ranking = scored.questions.ranking
    return None if ranking is None else measure_ranking_bias(ranking)


def measure_arm_bias(study: Study, arm: Arm) -> ArmBias | None:
    """Return the language bias of an arm: seeds are averaged within a fold, then folds; otherwise as `measure_bias`."""
    if not (values := figures_by_fold(study, arm, measure_ranking_bias)):
        return None
    folds = np.array(values)
    spread = BiasFigures(*folds.std(0, ddof=1).tolist()) if len(folds) > 1 else None
    return ArmBias(BiasFigures(*mean_of_defined(folds).tolist()), spread, len(folds))


def figures_by_fold(study: Study, arm: Arm, measure: Callable[[Ranking], Sequence[float]]) -> list[Values]:
    """Return figures of the rankings of an arm for each fold that has one, mean over seeds."""
    folds: dict[int, list[Sequence[float]]] = {}
    for scored in study.of(arm):
        if ranking := scored.questions.ranking:
            folds.setdefault(scored.fold, []).append(measure(ranking))
    return [mean_of_defined(np.array(seeds)) for seeds in folds.values()]


def measure_ranking_bias(ranking: Ranking, k: int = DEPTH) -> BiasFigures:
    """Return the language bias in a ranking's top k; shares use the whole pool if it is smaller."""
    pool, deepest = len(ranking.candidates), ranking.top.shape[1]
    if k < 1 or deepest < min(k, pool):
        raise ConfigError(f"language bias in the top {k}: k must be from 1 to {deepest}")
    size, depth = len(ranking.languages), min(k, pool)
    of = {language: i for i, language in enumerate(ranking.languages)}
    asked = sorted({question.language for question in ranking.questions})
    groups = np.array([asked.index(question.language) for question in ranking.questions])
    own = np.array([of.get(language, -1) for language in asked])
    spoken = np.array([of[candidate.language] for candidate in ranking.candidates])

    top = language_bias.counts(spoken[ranking.top[:, :depth]], size)
    relevant = _sums(language_bias.counts(spoken[ranking.relevant][:, None], size), ranking.offsets)
    others = np.bincount(spoken, minlength=size) - relevant
    hits = _sums((ranking.ranks <= depth).astype(np.int64), ranking.offsets)
    observed, expected, greatest = (
        language_bias.means(values, groups, len(asked))
        for values in (
            top / depth,
            language_bias.expected_shares(hits, relevant, others, depth),
            language_bias.greatest_shares(hits, relevant, others, depth),
        )
    )
    ids = [question.id for question in ranking.questions]
    bias = language_bias.bias(observed, expected, greatest, own)
    correlation = language_bias.correlations_by_language(ranking.top[:, :depth], ids, groups, len(asked))
    return BiasFigures(float(mean_of_defined(bias)), float(mean_of_defined(correlation)))


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
