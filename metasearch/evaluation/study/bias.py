"""Language bias in the rankings of finished runs, and agreement between translations.

`statistics.language_bias` and `statistics.rank_correlation` define them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError
from metasearch.evaluation.statistics import language_bias, rank_correlation
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.study import Scored, Study
from metasearch.runs.per_query_results import Ranking

Values = NDArray[np.float64]
DEPTH = 20
"""Depth of the rankings in the files of question results, and of mAP@20."""


class BiasFigures(NamedTuple):
    """Language bias in a few figures, each the mean over the question languages with a defined value, or NaN.

    Attributes:
        bias: (o − e) / (m − e): 0 without bias, 1 where the own language is taken wherever that is possible.
        correlation: rank correlation of the top k of a question and of its translations.
    """

    bias: float
    correlation: float


@dataclass(frozen=True, eq=False)
class Bias:
    """Language bias on one fold with one seed, or averaged over `folds`; A languages of questions, L of candidates.

    Attributes:
        k: depth of the top.
        asked: languages of the questions; `languages` of the candidates.
        excess: share of each candidate language in the top k beyond an unbiased ranker's, o − e, `(A, L)`.
        spread: sample standard deviation of the figures; None for a single fold.
    """

    k: int
    asked: tuple[str, ...]
    languages: tuple[str, ...]
    excess: Values
    figures: BiasFigures
    spread: BiasFigures | None = None
    folds: int = 1


def measure_bias(scored: Scored) -> Bias | None:
    """Return the language bias of an arm on a fold with a seed; None where no multilingual pool was ranked."""
    ranking = scored.questions.ranking
    return None if ranking is None else measure_ranking_bias(ranking)


def measure_arm_bias(study: Study, arm: Arm) -> Bias | None:
    """Return the language bias of an arm: seeds are averaged within a fold, then folds; otherwise as `measure_bias`."""
    folds: dict[int, list[Bias]] = {}
    for scored in study.of(arm):
        if bias := measure_bias(scored):
            folds.setdefault(scored.fold, []).append(bias)
    return mean([mean(seeds) for seeds in folds.values()]) if folds else None


def measure_ranking_bias(ranking: Ranking, k: int = DEPTH) -> Bias:
    """Return the language bias in a ranking's top k; shares use the whole pool if it is smaller."""
    pool, deepest = len(ranking.candidates), ranking.top.shape[1]
    if k < 1 or deepest < min(k, pool):
        raise ConfigError(f"language bias in the top {k}: k must be from 1 to {deepest}")
    size, depth = len(ranking.languages), min(k, pool)
    of = {language: i for i, language in enumerate(ranking.languages)}
    asked = tuple(sorted({question.language for question in ranking.questions}))
    groups = np.array([asked.index(question.language) for question in ranking.questions])
    own = np.array([of.get(language, -1) for language in asked])
    spoken = np.array([of[candidate.language] for candidate in ranking.candidates])

    top = language_bias.counts(spoken[ranking.top[:, :depth]], size)
    relevant = np.add.reduceat(language_bias.counts(spoken[ranking.relevant][:, None], size), ranking.offsets[:-1])
    others = np.bincount(spoken, minlength=size) - relevant
    hits = np.add.reduceat((ranking.ranks <= depth).astype(np.int64), ranking.offsets[:-1])
    observed, expected, greatest = (
        language_bias.means(values, groups, len(asked))
        for values in (
            top / depth,
            language_bias.expected_shares(hits, relevant, others, depth),
            language_bias.greatest_shares(hits, relevant, others, depth),
        )
    )
    ids = [question.id for question in ranking.questions]
    parts = (
        language_bias.bias(observed, expected, greatest, own),
        rank_correlation.by_language(ranking.top[:, :depth], ids, groups, len(asked)),
    )
    figures = BiasFigures(*(float(_mean(values)) for values in parts))
    return Bias(k, asked, ranking.languages, observed - expected, figures)


def mean(parts: Sequence[Bias]) -> Bias:
    """Return the mean over biases with equal k, and the spread; a missing language is NaN and does not count."""
    asked = tuple(sorted({language for part in parts for language in part.asked}))
    languages = tuple(sorted({language for part in parts for language in part.languages}))
    excess = np.full((len(parts), len(asked), len(languages)), np.nan)
    for wide, part in zip(excess, parts, strict=True):
        rows, columns = [asked.index(each) for each in part.asked], [languages.index(each) for each in part.languages]
        wide[np.ix_(rows, columns)] = part.excess
    values = np.array([part.figures for part in parts])
    figures = BiasFigures(*_mean(values).tolist())
    spread = BiasFigures(*values.std(0, ddof=1).tolist()) if len(parts) > 1 else None
    return Bias(parts[0].k, asked, languages, _mean(excess), figures, spread, len(parts))


def _mean(values: Values) -> Values:
    """Return the mean over the first axis, ignoring NaN; NaN if all are."""
    # `nanmean` warns by `warnings`, which `np.errstate` does not silence.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        means: Values = np.nanmean(values, axis=0)
    return means
