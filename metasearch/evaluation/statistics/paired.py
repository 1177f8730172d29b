"""The t-test of differences with its interval, also of bounded ones, and Holm's correction of several tests.

How far a difference would move if training were repeated: t intervals over folds and seeds.

A difference of two learners on fold f with seed s is the true difference, an effect of the fold, one of the seed, and
the sampling of articles and questions: `d_fs = δ + F_f + S_fs + Q_f`. Seeds are averaged within a fold. The variance of
the F fold means estimates `σ²_F + σ²_S / S + σ²_Q`, all that training and testing again would change, with F - 1
degrees of freedom. The interval is Student's over these means: the t-test over few clusters of Ibragimov & Müller
(2010), which stays below its level where folds differ in variance. A model that all folds share, such as a student,
adds the variance of its own seeds; with one seed it is taken as it is.

The percentiles of a hierarchical bootstrap (folds, seeds, articles, questions; Davison & Hinkley 1997, section 3.8)
reject a true null in up to 12 % of studies at 5 % (`python -m benchmarks.statistics.calibration`).

Folds share training articles, which may make their means correlate. That is not in the interval: Nadeau & Bengio
(2003) widen it by a rule of thumb, and one cross-validation has no unbiased estimate of it (Bengio & Grandvalet 2004).
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metasearch.evaluation.statistics.jackknife import Interval, Stratum, spread

Array = NDArray[np.float64]
Over = Literal["folds", "questions", "seeds and questions", "folds and seeds"]

# Measurements that differ by less than this share of themselves, and differences that differ by less than this share of
# the measurements, differ by rounding.
_EQUAL = 1e-14

_FEW = 5
"""Clusters away from the end below which Student's interval is not taken."""


def subtract(one: Array, other: Array) -> Array:
    """Return `one - other`, of any shape, without rounding."""
    return without_rounding(one - other, np.maximum(np.abs(one), np.abs(other)))


def without_rounding(differences: Array, largest: Array | float) -> Array:
    """Return differences, and 0 for those that are rounding beside the largest measurement."""
    return np.where(np.abs(differences) <= _EQUAL * largest, 0.0, differences)


@dataclass(frozen=True)
class PairedTest:
    """A two-sided paired t-test on n differences d (Student 1908); for one pair only `n` and `mean` are defined.

    Attributes:
        n: number of pairs.
        mean: mean of the differences.
        sd: sample standard deviation of the differences (ddof 1).
        t: mean / (sd / √n); None where sd is 0.
        p: two-sided p-value, above 0. If all differences are equal: 1 if they are 0, else None.
        low: lower end of the mean's t interval.
        high: upper end, likewise.
    """

    n: int
    mean: float
    sd: float | None = None
    t: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None

    def shown(self, sign: Literal["+", ""] = "+") -> str:
        """Return the mean times 100 with its interval, such as `+2.0 (+0.5 to +3.5)`; without `sign`, as of scores."""
        shown = f"{100 * self.mean:{sign}.1f}"
        if self.low is None or self.high is None:
            return shown
        return f"{shown} ({100 * self.low:{sign}.1f} to {100 * self.high:{sign}.1f})"


def clustered_test(
    values: Sequence[float], baseline: Sequence[float], clusters: Sequence[str], level: float = 0.95
) -> PairedTest:
    """Return the paired test of N units in independent clusters, such as the questions on one document, all `(N,)`.

    The mean has the cluster-robust standard error CR3, and t has Satterthwaite's degrees of freedom, which are few
    where few clusters have most of the units (`statistics.jackknife`). Clusters of equal size give the paired test of
    their means. `n` is the number of clusters, and `sd` is the standard error times √n.
    """
    one, other = (np.asarray(side, dtype=np.float64) for side in (values, baseline))
    differences, names = one - other, np.unique(np.asarray(clusters), return_inverse=True)[1]
    sums, sizes = np.bincount(names, weights=differences), np.bincount(names)
    mean, n, largest = float(differences.mean()), len(sizes), max(np.abs(one).max(), np.abs(other).max())
    if n < 2:
        return _untested(n, mean, largest)
    without = (sums.sum() - sums) / (len(one) - sizes)
    if np.ptp(without) <= _EQUAL * largest:  # no cluster differs from the others
        return _untested(n, mean, largest)
    found = spread([Stratum(np.array([mean]), without[:, None], (sizes / len(one))[:, None], len(one))])
    return _student(n, mean, float(found.variance[0]) ** 0.5, float(found.df[0]), level)


def bounded_test(
    values: NDArray[np.float64],
    baseline: NDArray[np.float64],
    clusters: Sequence[str],
    low: float,
    high: float,
    level: float = 0.95,
) -> PairedTest:
    """Return `clustered_test` with an interval for differences that are from `low` to `high`, of 95 % by default.

    Student's interval is cut at the ends. If all clusters are at one end it has no length, and if nearly all are, it is
    too short. There it is the interval of Clopper & Pearson (1934), with the mean as a share of G trials for G
    clusters of equal size. Clusters of n_g units count as G = (Σ n_g)² / Σ n_g² trials, from the variance of their mean
    (Kish 1965, "Survey Sampling"). It is exact where each cluster is at one of the ends; values between them vary less.
    For G clusters at the upper end it begins at `low + (high - low) · 0.025^(1/G)`.
    """
    test = clustered_test(values.tolist(), baseline.tolist(), clusters, level)
    if test.low is None or test.high is None:
        return test
    names, differences = np.unique(np.asarray(clusters), return_inverse=True)[1], values - baseline
    sizes = np.bincount(names)
    means = np.bincount(names, weights=differences) / sizes
    away = min(int((~np.isclose(means, end, rtol=0, atol=1e-12)).sum()) for end in (low, high))
    if away < min(_FEW, test.n / 2):
        share = (test.mean - low) / (high - low)
        first, last = _exact(share, float(sizes.sum() ** 2 / (sizes**2).sum()), (1 - level) / 2)
        return replace(test, low=low + (high - low) * first, high=low + (high - low) * last)
    return replace(test, low=max(low, test.low), high=min(high, test.high))


def _exact(share: float, trials: float, tail: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for a share of trials, with a probability outside at each end."""
    good = min(max(share, 0.0), 1.0) * trials
    low = float(special.betaincinv(good, trials - good + 1, tail)) if good > 0 else 0.0
    high = float(special.betaincinv(good + 1, trials - good, 1 - tail)) if good < trials else 1.0
    return low, high


def student(differences: Array, largest: float, level: float = 0.95) -> PairedTest:
    """Return the t-test of the mean of independent differences `(n,)`; `largest` is the largest measurement."""
    n, mean = len(differences), float(differences.mean())
    # Unchecked, differences that are equal but for rounding would have a tiny sd and an enormous t.
    if n < 2 or np.ptp(differences) <= _EQUAL * largest:
        return _untested(n, mean, largest)
    return _student(n, mean, float(differences.std(ddof=1)) / n**0.5, n - 1, level)


def _untested(n: int, mean: float, largest: float) -> PairedTest:
    """Return a test of one difference, or of equal ones."""
    if n < 2:
        return PairedTest(n, mean)
    return PairedTest(n, mean, 0.0, None, 1.0 if abs(mean) <= _EQUAL * largest else None, mean, mean)


def _student(n: int, mean: float, se: float, df: float, level: float) -> PairedTest:
    t = mean / se
    # `stdtr` is the distribution function of Student's t, `stdtrit` its inverse.
    reach = float(special.stdtrit(df, (1 + level) / 2)) * se
    p = max(2 * float(special.stdtr(df, -abs(t))), sys.float_info.min)  # which is too small for a float at times
    return PairedTest(n, mean, se * n**0.5, t, p, mean - reach, mean + reach)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the adjusted p-values: to reject where they are below α keeps the chance of any false rejection below α.

    The i-th smallest of m becomes `max_{j ≤ i} min(1, (m - j + 1) p_(j))`, however the tests depend on each other (Holm
    1979). A test that was not possible counts as none and stays None.
    """
    adjusted: list[float | None] = [None] * len(p_values)
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    reached = 0.0
    for place, (p, i) in enumerate(order):
        # The running maximum: a larger p-value must not become smaller than one before it.
        reached = max(reached, min(1.0, (len(order) - place) * p))
        adjusted[i] = reached
    return adjusted


@dataclass(frozen=True)
class Summary:
    """Mean ± sample standard deviation (ddof 1; None for one value), over `count` values."""

    mean: float
    sd: float | None
    count: int
    over: Literal["folds", "seeds"]

    @classmethod
    def of(cls, values: Sequence[float], over: Literal["folds", "seeds"]) -> Self:
        """Return mean and sample standard deviation of values, `√(Σ (x - mean)² / (n - 1))`."""
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), sd, len(values), over)


# Intervals over training again.


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
        shared: for each arm whose seeds vary independently of all folds, such as those of a student that is scored on
            all folds, the score of each seed. Their variances are added to that of the folds. On one fold they take the
            place of `FoldDifference.seeds`, as where the seeds of two arms cannot be paired.
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

    The critical value is the mean of those of Student's t, weighted by the variances (Cochran & Cox 1950):
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
