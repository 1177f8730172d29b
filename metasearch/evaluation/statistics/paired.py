"""The paired t-test with its interval, and Holm's correction of several tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy import special

# Differences that differ by less than this share of the measurements differ by rounding.
_EQUAL = 1e-14


@dataclass(frozen=True)
class PairedTest:
    """A two-sided paired t-test on n differences d (Student 1908); for one pair only `n` and `mean` are defined.

    Attributes:
        n: number of pairs.
        mean: mean of the differences.
        sd: sample standard deviation of the differences (ddof 1).
        t: mean / (sd / √n); None where sd is 0.
        p: two-sided p-value. If all differences are equal: 1 if they are 0, else 0.
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


def paired_test(values: Sequence[float], baseline: Sequence[float], level: float = 0.95) -> PairedTest:
    """Return the paired t-test between `values` and `baseline`, both `(n,)`, with the mean's interval.

    Pairs must be independent, which means of bootstrap resamples never are.
    """
    one, other = (np.asarray(side, dtype=np.float64) for side in (values, baseline))
    differences, n = one - other, len(one)
    sd = float(differences.std(ddof=1)) if n > 1 else 0.0
    largest = max(np.abs(one).max(), np.abs(other).max())
    return _student(n, float(differences.mean()), sd, np.ptp(differences), largest, level)


def clustered_test(
    values: Sequence[float], baseline: Sequence[float], clusters: Sequence[str], level: float = 0.95
) -> PairedTest:
    """Return the paired test of N units in independent clusters, such as the questions on one document, all `(N,)`.

    With G clusters of the differences d, the mean has the cluster-robust standard error (Liang & Zeger 1986)
    `√(G / (G - 1) Σ_g (Σ_{i in g} (d_i - mean))²) / N`, and t has G - 1 degrees of freedom. Each unit in a cluster of
    its own gives `paired_test`. `n` is the number of clusters, and `sd` is the standard error times √n.
    """
    one, other = (np.asarray(side, dtype=np.float64) for side in (values, baseline))
    differences, names = one - other, np.unique(np.asarray(clusters), return_inverse=True)[1]
    mean, n = float(differences.mean()), int(names.max()) + 1
    sums = np.bincount(names, weights=differences - mean)
    sd = n / len(one) * float(np.sqrt((sums**2).sum() / (n - 1))) if n > 1 else 0.0
    return _student(n, mean, sd, np.ptp(differences), max(np.abs(one).max(), np.abs(other).max()), level)


def _student(n: int, mean: float, sd: float, spread: float, largest: float, level: float) -> PairedTest:
    """Return the t-test of a mean over n; `spread` is the differences' range, `largest` the largest measurement."""
    if n == 1:
        return PairedTest(n, mean)
    # Unchecked, differences that are equal but for rounding would have a tiny sd and an enormous t.
    rounding = _EQUAL * largest
    if spread <= rounding or not sd:
        return PairedTest(n, mean, 0.0, None, 1.0 if abs(mean) <= rounding else 0.0, mean, mean)
    t = mean / (sd / n**0.5)
    # `stdtr` is the distribution function of Student's t, `stdtrit` its inverse.
    reach = float(special.stdtrit(n - 1, (1 + level) / 2)) * sd / n**0.5
    p = 2 * float(special.stdtr(n - 1, -abs(t)))
    return PairedTest(n, mean, sd, t, p, mean - reach, mean + reach)


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
