"""The difference of two arms on each fold with each seed, from which is told what training again would change."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from metasearch.study.arms import Arm
from metasearch.study.paired import Pairing, Runs
from metasearch.study.resampled import Figure
from metasearch.study.statistics.folds import FoldDifference
from metasearch.study.study import Scored, ScoreSelection

Array = NDArray[np.float64]


def fold_differences(
    pairing: Pairing, resampled: Mapping[Runs, Figure], languages: Sequence[str], selection: ScoreSelection
) -> list[list[FoldDifference]]:
    """Return the differences on the folds, of each language and, last, of their mean; a fold may lack a language."""
    made: list[list[FoldDifference]] = [[] for _ in (*languages, "mean")]
    for own, other in pairing.runs.values():
        by_seed = _by_seed(own, other, languages, selection)
        one, two = resampled[own], resampled[other]
        # A language that a fold lacks, or a figure that is undefined on a resample, is NaN on both sides.
        spread = _variance(one.resampled - two.resampled)
        # A bootstrap's variance is that of a population: too small by (A - 1) / A for that of a sample of A articles.
        spread *= one.clusters / max(one.clusters - 1, 1)
        for column, differences, variance in zip(made, by_seed.T, spread, strict=True):
            if not np.isnan(differences).any():
                column.append(FoldDifference(tuple(differences.tolist()), float(variance), one.clusters))
    return made


def crossed(pairing: Pairing, baseline: Arm) -> bool:
    """Return whether the folds share their models, as those of a student that was distilled once with each seed."""
    return pairing.arm.made_once or baseline.made_once


def _by_seed(own: Runs, other: Runs, languages: Sequence[str], selection: ScoreSelection) -> Array:
    """Return own - other with each seed, `(S, L + 1)`: on equal seeds, or against an only run; else of their means."""
    one, two = ({each.seed: _figures(each, languages, selection) for each in runs} for runs in (own, other))
    if one.keys() == two.keys():
        return np.stack([one[seed] - two[seed] for seed in one])
    if 1 in (len(one), len(two)):
        differences: Array = np.stack([*one.values()]) - np.stack([*two.values()])
        return differences
    mean: Array = np.mean([*one.values()], axis=0) - np.mean([*two.values()], axis=0)
    return mean[None]


def _figures(scored: Scored, languages: Sequence[str], selection: ScoreSelection) -> Array:
    """Return the measure of each language and, last, their mean, `(L + 1,)`; NaN where a language is not there."""
    values = scored.values(*selection)
    by_language = [[value for (asked, _), value in values.items() if asked == language] for language in languages]
    return np.array([*(fmean(own) if own else np.nan for own in by_language), fmean(values.values())])


def _variance(resampled: Array) -> Array:
    """Return the variance over resamples of each column, `(L + 1,)`, of those on which it is defined."""
    defined = ~np.isnan(resampled)
    count = defined.sum(axis=0)
    values = np.where(defined, resampled, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values.sum(axis=0) / count
        variance: Array = np.where(defined, (values - mean) ** 2, 0.0).sum(axis=0) / (count - 1)
    return variance
