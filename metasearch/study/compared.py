"""An arm beside the baseline: its difference, the intervals and tests of it, and what they are worth."""

from collections.abc import Mapping
from dataclasses import dataclass

from metasearch.study.arms import Arm
from metasearch.study.statistics.bootstrap import Interval
from metasearch.study.statistics.folds import Components, Heterogeneity, TrainingInterval
from metasearch.study.statistics.paired import PairedTest
from metasearch.study.statistics.power import SeedsNeeded
from metasearch.study.statistics.summary import Summary


@dataclass(frozen=True)
class Difference:
    """Means over folds of the baseline and of an arm on a language, and the intervals of their difference.

    `interval` and `training` are those of `Compared`, not corrected for the number of languages.
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
        """`*` where the interval over training excludes 0; `°` where there is none, and that of these models does."""
        return mark_of(self.training, self.interval)


@dataclass(frozen=True)
class Compared:
    """An arm beside the baseline, on the folds that both have.

    Attributes:
        seeds: seeds of the arm on these folds, as far as they were used.
        baseline: mean of the baseline over languages ± standard deviation, as the summary says over what.
        value: mean of the arm, likewise.
        training: the main interval, over what training and testing again would change, and its p-value; None where
            nothing was trained twice.
        holm: its p-value after Holm's correction over all compared arms; None where there is none.
        interval: paired bootstrap interval over articles, of these models as they are.
        by_fold: fold → difference.
        heterogeneity: whether folds differ more than their questions and seeds explain; None of an only fold.
        components: variances of training, seeds and questions; None of one fold with one seed.
        needed: seeds that a difference needs; None where nothing says what seeds do.
        test: paired t-test over fold × language means, as in the papers; no mark and no verdict is made of it.
        languages: language of the questions, or language pair → difference.
        level: level of the intervals; 1 - level is α of the tests.
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
    heterogeneity: Heterogeneity | None
    components: Components | None
    needed: SeedsNeeded | None
    test: PairedTest
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
        return mark_of(self.training, self.interval) + "†" * corrected


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


def mark_of(training: TrainingInterval | None, interval: Interval) -> str:
    """Return the mark of a difference: by its main interval, or, where it has none, by that of these models."""
    if training is None:
        return "°" * interval.excludes(0.0)
    return "*" * training.excludes(0.0)
