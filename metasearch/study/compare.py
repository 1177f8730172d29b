"""Compares the arms of a study with a baseline: differences, their intervals, tests and effect sizes.

Two answers are given to "is it different?", and kept apart:

- `*`: the interval of the paired bootstrap over questions excludes 0. This is the one to trust. A question is
  resampled together with all its translations, within its fold, and both arms are scored on the same resamples. It
  says what other questions would change, not what training again would: seeds are averaged before. Questions of one
  article count as independent; and it is not corrected for the number of arms, so that of 20 that do not differ one
  is expected to be marked.
- `†`: a paired t-test over fold × language means, after Holm's correction. Papers report it. Its n counts the
  languages as if they were independent, but they are translations of the same questions, and folds share training
  data; so its p-values are too small where languages move together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from metasearch.errors import ConfigError
from metasearch.study.arms import Arm
from metasearch.study.paired import Pairing, Runs, pair
from metasearch.study.resampled import Figure, difference, figures
from metasearch.study.statistics import bootstrap
from metasearch.study.statistics.bootstrap import Interval
from metasearch.study.statistics.paired import PairedTest, holm, paired_test
from metasearch.study.statistics.summary import Summary, summary
from metasearch.study.study import ScoreSelection, Study, abridged


@dataclass(frozen=True)
class Difference:
    """Means over folds of the baseline and of an arm on a language, and the bootstrap interval of their difference."""

    baseline: float
    value: float
    interval: Interval

    @property
    def difference(self) -> float:
        """Value - baseline."""
        return self.value - self.baseline


@dataclass(frozen=True)
class Compared:
    """An arm beside the baseline, on the folds that both have.

    Attributes:
        seeds: seeds of the arm on these folds, as far as they were used.
        baseline: mean of the baseline over languages ± standard deviation, as the summary says over what.
        value: mean of the arm, likewise.
        interval: paired bootstrap interval of the difference.
        test: paired t-test over fold × language means.
        adjusted: its p-value after Holm's correction over all compared arms; None where no test was possible.
        languages: language of the questions, or language pair → difference, whose interval is not corrected for the
            number of languages.
        level: level of the intervals; 1 - level is α of the test.
    """

    arm: Arm
    folds: tuple[int, ...]
    seeds: tuple[int, ...]
    baseline: Summary
    value: Summary
    interval: Interval
    test: PairedTest
    adjusted: float | None
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
        """`*` where the bootstrap interval excludes 0, `†` where Holm's adjusted p is below 1 - level; or both."""
        tested = self.adjusted is not None and self.adjusted < 1 - self.level
        return "*" * self.interval.excludes(0.0) + "†" * tested


@dataclass(frozen=True)
class Comparison:
    """All arms of a study beside one of them.

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
    arms: tuple[Compared, ...]
    missing: tuple[str, ...]

    def of(self, arm: Arm) -> Compared | None:
        """Return an arm beside the baseline; None for the baseline, and where nothing could be compared."""
        return next((each for each in self.arms if each.arm == arm), None)


def compare(
    study: Study,
    baseline: Arm | None = None,
    measure: str | None = None,
    pool: str | None = None,
    level: float = bootstrap.LEVEL,
    resamples: int = bootstrap.RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return every arm of a study beside the baseline, on the folds and seeds that both have (`paired.pair`).

    A figure is the mean over folds of the mean over languages; seeds are averaged first, because they are no new data.

    Args:
        study: study with the arms.
        baseline: arm to compare with; by default zero-shot, or the first arm.
        measure: name of the measure; by default the task's.
        pool: name of the pool; by default the task's.
        level: level of the intervals.
        resamples: number of resamples of the bootstrap.
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
    arms = [_compared(pairing, resampled, languages, selection, level) for pairing in pairings]
    # After all tests: an adjusted p-value depends on those of all arms.
    adjusted = holm([each.test.p for each in arms])
    arms = [replace(each, adjusted=p) for each, p in zip(arms, adjusted, strict=True)]
    asked = selection.measure, selection.pool, level, resamples, seed
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
    resampled: Mapping[Runs, Figure],
    languages: Sequence[str],
    selection: ScoreSelection,
    level: float,
) -> Compared:
    """Return an arm beside the baseline, its p-value not yet adjusted."""
    pairs = list(pairing.runs.values())
    own, other, differences = difference(pairs, resampled)
    intervals = [bootstrap.interval(column, level) for column in differences.T]
    means = [np.concatenate([resampled[each[side]].observed[:-1] for each in pairs]) for side in (0, 1)]
    there = ~np.isnan(means[0])  # a fold may lack a language
    return Compared(
        arm=pairing.arm,
        folds=tuple(pairing.runs),
        seeds=tuple(sorted({each.seed for group, _ in pairs for each in group})),
        baseline=over_folds([group for _, group in pairs], selection),
        value=over_folds([group for group, _ in pairs], selection),
        interval=intervals[-1],
        test=paired_test(means[0][there], means[1][there], level),
        adjusted=None,
        languages={
            language: Difference(float(other[i]), float(own[i]), intervals[i])
            for i, language in enumerate(languages)
            if not np.isnan(own[i])
        },
        level=level,
    )


def over_folds(groups: Sequence[Runs], selection: ScoreSelection) -> Summary:
    """Return the mean over folds of the mean over languages, and its deviation.

    Of each fold a group of runs is given, one for each seed, which are averaged first. So the deviation is that of the
    folds; with one fold it is that of its seeds.
    """
    means = [[fmean(each.values(*selection).values()) for each in group] for group in groups]
    if len(means) == 1 and len(means[0]) > 1:
        return summary(means[0], "seeds")
    return summary([fmean(seeds) for seeds in means], "folds")
