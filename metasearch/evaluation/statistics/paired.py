"""The t-test of differences with its interval, and Holm's correction of several tests."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metasearch.evaluation.statistics.jackknife import Stratum, spread

Array = NDArray[np.float64]

# Measurements that differ by less than this share of themselves, and differences that differ by less than this share of
# the measurements, differ by rounding.
_EQUAL = 1e-14


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
