"""Compares the arms of a study with a baseline: differences, their intervals, tests and effect sizes.

Two answers to "is it different?" are kept apart:

- `training`, the main one: the interval over training again on other folds with other seeds, and testing on other
  articles and questions (`statistics.folds`). `*`: it excludes 0; `†`: so does its p-value after Holm's correction.
- `interval`, *fixed models*: the paired bootstrap over articles within their folds. It covers other questions for the
  trained models, and is narrower. It sets a mark (`°`) only if nothing was trained twice.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from metasearch.errors import ConfigError
from metasearch.evaluation.statistics import bootstrap
from metasearch.evaluation.statistics.bootstrap import Array, Interval
from metasearch.evaluation.statistics.folds import FoldDifference, TrainingInterval, training_interval
from metasearch.evaluation.statistics.paired import Summary, holm
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.paired import Figure, Pairing, Runs, difference, figures, join_numbers, pair
from metasearch.evaluation.study.study import Scored, ScoreSelection, Study, abridged

# An arm beside the baseline: its difference, the intervals and tests of it, and what they are worth.


@dataclass(frozen=True)
class Difference:
    """Means over folds for baseline and arm in a language, and intervals for their difference.

    `interval` and `training` as in `ArmComparison`, not corrected for the number of languages.
    """

    baseline: float
    value: float
    interval: Interval
    training: TrainingInterval | None

    @property
    def difference(self) -> float:
        """Value - baseline."""
        return self.value - self.baseline

    @property
    def mark(self) -> str:
        """`*` if the interval over retraining excludes 0; `°` if only the interval for fixed models exists and does."""
        return choose_mark(self.training, self.interval)


@dataclass(frozen=True)
class ArmComparison:
    """An arm beside the baseline, on the folds that both have.

    Attributes:
        seeds: seeds of the arm on these folds, as far as they were used.
        baseline: the baseline's mean over languages, and its deviation; `value` is the arm's.
        training: the main interval and its p-value; None if nothing was trained twice.
        holm: its p-value after Holm's correction over all compared arms.
        interval: paired bootstrap interval over articles, for fixed models.
        by_fold: fold → difference.
        languages: language of the questions, or language pair → difference.
        level: confidence level of intervals; 1 - level is the tests' α.
    """

    arm: Arm
    folds: tuple[int, ...]
    seeds: tuple[int, ...]
    baseline: Summary
    value: Summary
    training: TrainingInterval | None
    holm: float | None
    interval: Interval
    by_fold: Mapping[int, float]
    languages: Mapping[str, Difference]
    level: float

    @property
    def difference(self) -> float:
        """Value - baseline."""
        return self.value.mean - self.baseline.mean

    @property
    def wins(self) -> int:
        """Languages on which the arm is better."""
        return sum(each.difference > 0 for each in self.languages.values())

    @property
    def mark(self) -> str:
        """`*` where the interval over training excludes 0, `†` where Holm's p does, too; `°` as in `Difference`."""
        corrected = self.holm is not None and self.holm < 1 - self.level
        return choose_mark(self.training, self.interval) + "†" * corrected


@dataclass(frozen=True)
class Comparison:
    """A study's arms compared with one of them.

    `study`, `task`, `measure` and `pool` are names; `resamples` and `seed` are the bootstrap's, `level` its intervals'.
    `arms` are in the order of the study, and `missing` says what could not be compared or read, one sentence each.
    """

    study: str
    task: str
    baseline: Arm
    measure: str
    pool: str
    level: float
    resamples: int
    seed: int
    arms: tuple[ArmComparison, ...]
    missing: tuple[str, ...]

    def of(self, arm: Arm) -> ArmComparison | None:
        """Return an arm beside the baseline; None for the baseline, and where nothing could be compared."""
        return next((each for each in self.arms if each.arm == arm), None)


def choose_mark(training: TrainingInterval | None, interval: Interval) -> str:
    """Return a difference's mark, by its main interval, or by the models' interval without one."""
    if training is None:
        return "°" * interval.excludes(0.0)
    return "*" * training.excludes(0.0)


# The difference of two arms on each fold with each seed, which shows what training again would change.


def fold_differences(
    pairing: Pairing, resampled: Mapping[Runs, Figure], languages: Sequence[str], selection: ScoreSelection
) -> list[list[FoldDifference]]:
    """Return differences per fold and language, and last for their mean; a fold may lack a language."""
    made: list[list[FoldDifference]] = [[] for _ in (*languages, "mean")]
    for own, other in pairing.runs.values():
        by_seed = _by_seed(own, other, languages, selection)
        one, two = resampled[own], resampled[other]
        with warnings.catch_warnings():
            # A language that a fold lacks, or a figure that is undefined on a resample, is NaN on both sides.
            warnings.filterwarnings("ignore", "Degrees of freedom", RuntimeWarning)
            spread = np.nanvar(one.resampled - two.resampled, axis=0, ddof=1)
        # A bootstrap gives a population's variance: too small by (A - 1) / A for a sample of A articles.
        spread *= one.clusters / max(one.clusters - 1, 1)
        for column, differences, variance in zip(made, by_seed.T, spread, strict=True):
            if not np.isnan(differences).any():
                column.append(FoldDifference(tuple(differences.tolist()), float(variance), one.clusters))
    return made


def crossed(pairing: Pairing, baseline: Arm) -> bool:
    """Return whether folds share models, as with a student distilled once per seed."""
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


def compare(
    study: Study,
    baseline: Arm | None = None,
    measure: str | None = None,
    pool: str | None = None,
    level: float = bootstrap.LEVEL,
    resamples: int = bootstrap.RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare every arm of a study with the baseline, on common folds and seeds (`paired.pair`).

    A figure is the mean over folds of the mean over languages; seeds are averaged first, because they are no new data.

    Args:
        study: study with the arms.
        baseline: arm to compare with; by default zero-shot, or the first arm.
        measure: name of the measure; by default the task's.
        pool: name of the pool; by default the task's.
        level: level of the intervals.
        resamples: number of bootstrap resamples.
        seed: seed of the resamples; the same seed gives the same bits.

    Raises:
        ConfigError: there is nothing to compare with, or no arm shares a fold with the baseline; or level, resamples,
            measure or pool is wrong.
        RunFolderError: a run has no results of its questions.
        DataError: they are damaged or do not belong to its scores.
    """
    bootstrap.check(level, resamples)
    selection = study.select(measure, pool)
    baseline = baseline or study.baseline
    pairings, missing = _pairings(study, baseline, selection)
    languages = study.languages_of(selection)
    groups = (group for pairing in pairings for both in pairing.runs.values() for group in both)
    resampled = figures(groups, languages, selection, resamples, seed)
    arms = [_compared(pairing, baseline, resampled, languages, selection, level) for pairing in pairings]
    # After all tests: an adjusted p-value depends on the p-values of all arms.
    adjusted = holm([each.training.p if each.training else None for each in arms])
    arms = [replace(each, holm=p) for each, p in zip(arms, adjusted, strict=True)]
    asked = selection.measure, selection.pool, level, resamples, seed
    if alone := {first.fold for (first, *_), each in resampled.items() if each.one_article}:
        missing.append(
            f"Fold {join_numbers(alone)}: all questions are of one article, so each counts as an article of its own."
        )
    return Comparison(study.name, study.task, baseline, *asked, tuple(arms), (*study.missing, *missing))


def _pairings(study: Study, baseline: Arm, selection: ScoreSelection) -> tuple[list[Pairing], list[str]]:
    others = [arm for arm in study.arms if arm != baseline]
    if not others:
        raise ConfigError(
            f"{study.name}: there is only {baseline.label}, and nothing to compare it with{abridged(study.missing)}"
        )
    pairings, failed = [], []
    for arm in others:
        try:
            pairings.append(pair(study, arm, baseline, selection))
        except ConfigError as error:
            # One arm without a common fold does not stop the others; the comparison names it as missing.
            failed.append(str(error))
    if not pairings:
        raise ConfigError(f"{study.name}: nothing can be compared. {' '.join(failed)}")
    return pairings, [*(note for pairing in pairings for note in pairing.notes), *failed]


def _compared(
    pairing: Pairing,
    baseline: Arm,
    resampled: Mapping[Runs, Figure],
    languages: Sequence[str],
    selection: ScoreSelection,
    level: float,
) -> ArmComparison:
    """Return an arm beside the baseline, its p-value not yet adjusted."""
    pairs = list(pairing.runs.values())
    own, other, differences = difference(pairs, resampled)
    intervals = [bootstrap.interval(column, level) for column in differences.T]
    by_fold = fold_differences(pairing, resampled, languages, selection)
    shared = crossed(pairing, baseline)
    training = [training_interval(folds, level, shared) if folds else None for folds in by_fold]
    return ArmComparison(
        arm=pairing.arm,
        folds=tuple(pairing.runs),
        seeds=tuple(sorted({each.seed for group, _ in pairs for each in group})),
        baseline=over_folds([group for _, group in pairs], selection),
        value=over_folds([group for group, _ in pairs], selection),
        training=training[-1],
        holm=None,
        interval=intervals[-1],
        by_fold={fold: each.mean for fold, each in zip(pairing.runs, by_fold[-1], strict=True)},
        languages={
            language: Difference(float(other[i]), float(own[i]), intervals[i], training[i])
            for i, language in enumerate(languages)
            if not np.isnan(own[i])
        },
        level=level,
    )


def over_folds(groups: Sequence[Runs], selection: ScoreSelection) -> Summary:
    """Return mean and deviation over folds, of the mean over languages; over the seeds of an only fold."""
    means = [[fmean(each.values(*selection).values()) for each in group] for group in groups]
    if len(means) == 1 and len(means[0]) > 1:
        return Summary.of(means[0], "seeds")
    return Summary.of([fmean(seeds) for seeds in means], "folds")
