"""How far a difference would move if training were repeated: t intervals over folds and seeds.

A difference of two learners on fold f with seed s is the true difference, an effect of the fold, one of the seed, and
the sampling of articles and questions: `d_fs = δ + F_f + S_fs + Q_f`. Seeds are averaged within a fold. The variance of
the F fold means estimates `σ²_F + σ²_S / S + σ²_Q`, all that training and testing again would change, with F - 1
degrees of freedom. The interval is Student's over these means: the t-test over few clusters of Ibragimov & Müller
(2010), which stays below its level where folds differ in variance. A model that all folds share, such as a student,
adds the variance of its own seeds; with one seed it adds none.

The percentiles of a hierarchical bootstrap (folds, seeds, articles, questions; Davison & Hinkley 1997, section 3.8)
reject a true null in up to 12 % of studies at 5 % (`python -m benchmarks.statistics.calibration`).

Folds share training articles, which may make their means correlate. That is not in the interval: Nadeau & Bengio
(2003) widen it by a rule of thumb, and one cross-validation has no unbiased estimate of it (Bengio & Grandvalet 2004).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.statistics.paired import student, without_rounding

Over = Literal["folds", "questions", "seeds and questions", "folds and seeds"]


@dataclass(frozen=True)
class TrainingInterval(Interval):
    """A difference's interval over what training and testing again would change.

    Attributes:
        p: two-sided, of the same t; like the ends None where equal differences other than 0 show no variance.
        se: standard error of the difference.
        df: degrees of freedom; Satterthwaite's (1946) where two variances are added, for information only.
        over: what would change; for one fold its seeds and questions, which says nothing about other folds, and for two
            models that are trained on no fold only the questions.
    """

    p: float | None
    se: float
    df: float
    over: Over


@dataclass(frozen=True)
class FoldDifference:
    """A difference on one fold.

    Attributes:
        seeds: the difference with each seed; one value, their mean, where the arms' seeds cannot be paired.
        questions: sampling variance, over the fold's articles and questions, of the mean over seeds.
        df: degrees of freedom of that variance.
        largest: largest score of both arms; differences that are tiny beside it are rounding.
    """

    seeds: tuple[float, ...]
    questions: float
    df: float
    largest: float = 1.0

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.seeds))


def training_interval(
    folds: Sequence[FoldDifference], level: float, shared: Sequence[Sequence[float]] = (), trained: bool = True
) -> TrainingInterval | None:
    """Return the interval for the mean over folds; None for one fold on which nothing was trained twice.

    Args:
        folds: the difference on each fold.
        level: confidence level.
        shared: the score of each seed, for each arm whose models all folds share, such as a student. Their variances
            are added to the variance of the folds. On one fold they replace `FoldDifference.seeds`, which is also for
            arms whose seeds cannot be paired.
        trained: whether an arm is trained on each fold; otherwise folds differ by their questions alone.
    """
    largest = max(fold.largest for fold in folds)
    means = without_rounding(np.array([fold.mean for fold in folds]), largest)
    value = float(means.mean())
    parts = [_of_mean(scores) for scores in shared]
    if len(folds) > 1 and parts:
        # What folds and seeds do together is in both, so that the sum is rather too large than too small.
        return _added(value, [_of_mean(means.tolist()), *parts], level, "folds and seeds")
    if len(folds) > 1:
        over: Over = "folds" if trained else "questions"
        test = student(means, largest, level)
        if not test.sd and value:
            return TrainingInterval(None, None, None, 0.0, len(folds) - 1, over)
        return TrainingInterval(test.low, test.high, test.p, (test.sd or 0.0) / len(folds) ** 0.5, len(folds) - 1, over)
    (fold,) = folds
    if not parts and len(fold.seeds) > 1:
        parts = [_of_mean(fold.seeds)]
    if not parts or not np.isfinite(fold.questions):
        return None
    return _added(value, [*parts, (fold.questions, fold.df)], level, "seeds and questions")


def _of_mean(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean's variance, and its degrees of freedom."""
    # Unchecked, equal values would have the variance of their rounded mean.
    equal = not without_rounding(np.ptp(values), np.abs(values).max())
    return 0.0 if equal else float(np.var(values, ddof=1)) / len(values), len(values) - 1


def _added(value: float, parts: Sequence[tuple[float, float]], level: float, over: Over) -> TrainingInterval:
    """Return the interval for a value whose variance sums several estimates with their degrees of freedom.

    The critical value is a mean of critical values of Student's t, weighted by the variances (Cochran & Cox 1950):
    Satterthwaite's degrees of freedom, which come out large where two seeds happen to agree, reject 10 % at 5 %.
    """
    variance = sum(part for part, _ in parts)
    se = variance**0.5

    def reach(of: float) -> float:
        critical = (part * float(special.stdtrit(max(df, 1), (1 + of) / 2)) for part, df in parts)
        return sum(critical) / se if se else 0.0

    spread = sum(part**2 / max(df, 1) for part, df in parts)
    df = variance**2 / spread if spread else float(parts[0][1])
    if not variance and value:
        return TrainingInterval(None, None, None, 0.0, df, over)
    return TrainingInterval(value - reach(level), value + reach(level), _p(abs(value), reach), se, df, over)


def _p(distance: float, reach: Callable[[float], float]) -> float:
    """Return 1 - the level whose interval just reaches 0, by bisection; 1 at distance zero."""
    if not distance:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reach(1 - middle) > distance else (low, middle)
    return high
