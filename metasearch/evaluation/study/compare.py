"""Compares the arms of a study with their baselines: differences, their intervals, tests and effect sizes.

Two answers to "is it different?" are kept apart:

- `training`, the main one: the interval over training again on other folds with other seeds, and testing on other
  articles and questions (`statistics.paired`). `*`: it excludes 0; `†`: so does its p-value after Holm's correction.
- `interval`, *fixed models*: Student's over articles within their folds (`statistics.jackknife`). It covers other
  questions for the trained models, and is narrower. It sets a mark (`°`) only if nothing was trained twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from metasearch.errors import ConfigError
from metasearch.evaluation.statistics import jackknife
from metasearch.evaluation.statistics.folds import FoldDifference, TrainingInterval, training_interval
from metasearch.evaluation.statistics.jackknife import Array, Interval
from metasearch.evaluation.statistics.paired import Summary, holm, subtract
from metasearch.evaluation.study.paired import Pairing, Runs, Sample, difference, figures, join_numbers, pair
from metasearch.evaluation.study.study import Arm, ScoreSelection, Study, abridged

# An arm beside its baseline: its difference, the intervals and tests of it, and what they are worth.


@dataclass(frozen=True)
class Tested:
    """A difference's intervals; which of them is the main one is decided here alone."""

    interval: Interval
    training: TrainingInterval | None

    @property
    def main(self) -> Interval:
        """The interval over training again, or for fixed models where nothing was trained twice."""
        return self.training or self.interval

    @property
    def mark(self) -> str:
        """`*` if the interval over training excludes 0; `°` if only the interval of fixed models exists and does."""
        return ("*" if self.training else "°") * self.main.excludes(0.0)


@dataclass(frozen=True)
class Difference(Tested):
    """Means over folds for baseline and arm in a language, and intervals for their difference.

    `interval` and `training` as in `ArmComparison`, not corrected for the number of languages.
    """

    baseline: float
    value: float

    @property
    def difference(self) -> float:
        """Value - baseline."""
        return self.value - self.baseline


@dataclass(frozen=True)
class ArmComparison(Tested):
    """An arm beside its baseline, on the folds that both have.

    Attributes:
        arm: the arm; `against` is its baseline.
        seeds: seeds of the arm on these folds, as far as they were used.
        baseline: the baseline's mean over languages, and its deviation; `value` is the arm's.
        training: the main interval and its p-value; None if nothing was trained twice.
        holm: its p-value after Holm's correction over all compared arms.
        interval: interval over articles, for fixed models.
        differing: number of articles on which the two differ.
        by_fold: fold → difference.
        languages: language of the questions, or language pair → difference.
        level: confidence level of intervals; 1 - level is the tests' α.
    """

    arm: Arm
    against: Arm
    folds: tuple[int, ...]
    seeds: tuple[int, ...]
    baseline: Summary
    value: Summary
    holm: float | None
    differing: int
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
        """`*` or `°` as in `Difference`, and `†` where Holm's p is significant, too."""
        corrected = self.holm is not None and self.holm < 1 - self.level
        return super().mark + "†" * corrected


@dataclass(frozen=True)
class Comparison:
    """A study's arms, each compared with one of them.

    `study`, `task`, `measure` and `pool` are names, and `level` is that of the intervals. `baseline` is that of all
    arms, and None where each has its own. `arms` are in the order of the study, and `missing` says what could not be
    compared or read, one sentence each.
    """

    study: str
    task: str
    baseline: Arm | None
    measure: str
    pool: str
    level: float
    arms: tuple[ArmComparison, ...]
    missing: tuple[str, ...]

    @property
    def reference(self) -> str:
        """What arms are compared with, in words."""
        return self.baseline.label if self.baseline else "the encoder before training"

    def of(self, arm: Arm) -> ArmComparison | None:
        """Return an arm beside its baseline; None for a baseline, and where nothing could be compared."""
        return next((each for each in self.arms if each.arm == arm), None)


def compare(
    study: Study,
    baseline: Arm | None = None,
    measure: str | None = None,
    pool: str | None = None,
    level: float = jackknife.LEVEL,
) -> Comparison:
    """Compare every arm of a study with its baseline, on common folds and seeds (`paired.pair`).

    A figure is the mean over folds of the mean over languages; seeds are averaged first, because they are no new data.

    Args:
        study: study with the arms.
        baseline: arm to compare all others with; by default each has its own (`Study.baseline_of`).
        measure: name of the measure; by default the task's.
        pool: name of the pool; by default the task's.
        level: level of the intervals.

    Raises:
        ConfigError: there is nothing to compare with, or no arm shares a fold with its baseline; or level, measure or
            pool is wrong.
        RunFolderError: a run has no results of its questions.
        DataError: they are damaged or do not belong to its scores.
    """
    jackknife.check(level)
    selection = study.select(measure, pool)
    pairings, missing = _pairings(study, baseline, selection)
    languages = study.languages_of(selection)
    groups = [group for pairing in pairings for both in pairing.runs.values() for group in both]
    known = figures(groups, languages, selection)
    arms = [_compared(pairing, known, languages, selection, level) for pairing in pairings]
    # After all tests: an adjusted p-value depends on the p-values of all arms.
    adjusted = holm([each.training.p if each.training else None for each in arms])
    arms = [replace(each, holm=p) for each, p in zip(arms, adjusted, strict=True)]
    if alone := {first.fold for (first, *_), each in known.items() if each.one_article}:
        missing.append(
            f"Fold {join_numbers(alone)}: all questions are of one article, so each counts as an article of its own."
        )
    baselines = {each.against for each in arms}
    only = baselines.pop() if len(baselines) == 1 else None
    asked = selection.measure, selection.pool, level
    return Comparison(study.name, study.task, only, *asked, tuple(arms), (*study.missing, *missing))


def _pairings(study: Study, baseline: Arm | None, selection: ScoreSelection) -> tuple[list[Pairing], list[str]]:
    """Return each arm with its baseline, and why others have none."""
    pairings, failed = [], []
    for arm in study.arms:
        against = study.baseline_of(arm) if baseline is None else baseline
        if against is None and arm.made_once and sum(each.zero_shot for each in study.arms) > 1:
            failed.append(f"{arm.label}: several encoders could be its baseline; name one with --baseline.")
        if against in (None, arm):
            continue
        try:
            pairings.append(pair(study, arm, against, selection))
        except ConfigError as error:
            # One arm without a common fold does not stop the others; the comparison names it as missing.
            failed.append(str(error))
    if not pairings:
        labels = ", ".join(arm.label for arm in study.arms)
        several = f"{labels}: none is the baseline of another; name one with --baseline."
        alone = f"there is only {labels}, and nothing to compare it with{abridged(study.missing)}"
        why = " ".join(failed) or (several if study.arms[1:] else alone)
        raise ConfigError(f"{study.name}: {'nothing can be compared. ' * bool(study.arms[1:])}{why}")
    return pairings, [*(note for pairing in pairings for note in pairing.notes), *failed]


def _compared(
    pairing: Pairing, known: Mapping[Runs, Sample], languages: Sequence[str], selection: ScoreSelection, level: float
) -> ArmComparison:
    """Return an arm beside its baseline, its p-value not yet adjusted."""
    sides = [[known[each[side]] for each in pairing.runs.values()] for side in (0, 1)]
    strata = [difference(one, other) for one, other in zip(*sides, strict=True)]
    own, other = (_over_folds([figure.values for figure in side]) for side in sides)
    intervals = jackknife.spread(strata).intervals(_over_folds([each.values for each in strata]), level)
    by_fold = _fold_differences(pairing, sides, strata, languages, selection)
    shared = _shared_seeds(pairing, languages, selection)
    trained = any(not (arm.zero_shot or arm.made_once) for arm in (pairing.arm, pairing.baseline))
    training = [
        training_interval(folds, level, seeds, trained) if folds else None
        for folds, seeds in zip(by_fold, shared, strict=True)
    ]
    return ArmComparison(
        intervals[-1],
        training[-1],
        arm=pairing.arm,
        against=pairing.baseline,
        folds=tuple(pairing.runs),
        seeds=tuple(sorted({each.seed for group, _ in pairing.runs.values() for each in group})),
        baseline=over_folds([group for _, group in pairing.runs.values()], selection),
        value=over_folds([group for group, _ in pairing.runs.values()], selection),
        holm=None,
        differing=sum(int((one.sums != other.sums).any(axis=1).sum()) for one, other in zip(*sides, strict=True)),
        by_fold={fold: each.mean for fold, each in zip(pairing.runs, by_fold[-1], strict=True)},
        languages={
            language: Difference(intervals[i], training[i], float(other[i]), float(own[i]))
            for i, language in enumerate(languages)
            if not np.isnan(own[i])
        },
        level=level,
    )


def _over_folds(values: Sequence[Array]) -> Array:
    """Return the mean over the folds that have a figure, `(F, K)` → `(K,)`; NaN where none has."""
    there = ~np.isnan(values)
    means: Array = np.nansum(values, axis=0) / np.where(there.any(axis=0), there.sum(axis=0), np.nan)
    return means


# The difference of two arms on each fold with each seed, which shows what training again would change.


def _fold_differences(
    pairing: Pairing,
    sides: Sequence[Sequence[Sample]],
    strata: Sequence[jackknife.Stratum],
    languages: Sequence[str],
    selection: ScoreSelection,
) -> list[list[FoldDifference]]:
    """Return differences per fold and language, and last for their mean; a fold may lack a language."""
    made: list[list[FoldDifference]] = [[] for _ in (*languages, "mean")]
    for both, one, other, stratum in zip(pairing.runs.values(), *sides, strata, strict=True):
        differences = _by_seed(*(_scores(runs, languages, selection) for runs in both))
        spread, largest = jackknife.spread([stratum]), np.maximum(np.abs(one.values), np.abs(other.values))
        for column, *own in zip(made, differences.T, spread.variance, spread.df, largest, strict=True):
            seeds, *rest = own
            if not np.isnan(seeds).any():
                column.append(FoldDifference(tuple(seeds.tolist()), *map(float, rest)))
    return made


def _by_seed(one: Mapping[int, Array], other: Mapping[int, Array]) -> Array:
    """Return one - other with each seed, `(S, L + 1)`; of their means, if they have other seeds."""
    first, second = (np.stack([*side.values()]) for side in (one, other))
    if one.keys() == other.keys():
        return subtract(first, second)
    return subtract(first.mean(axis=0), second.mean(axis=0))[None]


def _shared_seeds(pairing: Pairing, languages: Sequence[str], selection: ScoreSelection) -> list[list[list[float]]]:
    """Return for each language, and last their mean, the scores by seed of each arm whose seeds vary on their own.

    On several folds these are models that all folds share. On one fold these are seeds that cannot be paired.
    """
    made: list[list[list[float]]] = [[] for _ in (*languages, "mean")]
    for arm, side in ((pairing.arm, 0), (pairing.baseline, 1)):
        by_fold = [_scores(both[side], languages, selection) for both in pairing.runs.values()]
        seeds = set.intersection(*map(set, by_fold))
        (own, other), *more = pairing.runs.values()
        unpaired = not more and {each.seed for each in own} != {each.seed for each in other}
        if len(seeds) > 1 and (arm.made_once if more else unpaired):
            scores = np.array([_over_folds([known[seed] for known in by_fold]) for seed in sorted(seeds)])
            for column, values in zip(made, scores.T.tolist(), strict=True):
                column.append(values)
    return made


def _scores(runs: Runs, languages: Sequence[str], selection: ScoreSelection) -> dict[int, Array]:
    """Return seed → the measure of each language and, last, their mean, `(L + 1,)`; NaN where a language is missing."""
    made = {}
    for run in runs:
        values = run.values(*selection)
        by_language = [[value for (asked, _), value in values.items() if asked == language] for language in languages]
        made[run.seed] = np.array([*(fmean(own) if own else np.nan for own in by_language), fmean(values.values())])
    return made


def over_folds(groups: Sequence[Runs], selection: ScoreSelection) -> Summary:
    """Return mean and deviation over folds, of the mean over languages; over the seeds of an only fold."""
    means = [[fmean(each.values(*selection).values()) for each in group] for group in groups]
    if len(means) == 1 and len(means[0]) > 1:
        return Summary.of(means[0], "seeds")
    return Summary.of([fmean(seeds) for seeds in means], "folds")
