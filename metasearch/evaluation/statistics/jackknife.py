"""The jackknife over groups of questions: how much a figure would differ on other questions, for the same models.

A question is in a group with its translations and with all questions on its article, since these do not vary
independently. The figure is computed without each group in turn. For a mean this is the cluster-robust variance CR3
(Bell & McCaffrey 2002; MacKinnon, Nielsen & Webb 2023), and it is defined for correlations, too. The interval is
Student's, with Satterthwaite's degrees of freedom (Bell & McCaffrey 2002; Imbens & Kolesár 2016): G - 1 for G groups of
equal size, and near 1 where one group has most of the questions.

The percentiles of a bootstrap over few groups are too narrow (`python -m benchmarks.statistics.coverage`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metasearch.errors import ConfigError

Array = NDArray[np.float64]

LEVEL = 0.95
_ROUNDING = 1e-13
"""Share of a figure up to which its standard error is rounding."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval, whose ends are None where it is undefined."""

    low: float | None
    high: float | None

    def excludes(self, value: float) -> bool:
        """Return whether a value is outside; an undefined interval excludes nothing."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


@dataclass(frozen=True, eq=False)
class Spread:
    """The sampling variance of K figures, `(K,)`, and its degrees of freedom, `(K,)`; NaN where one is undefined."""

    variance: Array
    df: Array

    def intervals(self, values: Array, level: float = LEVEL) -> list[Interval]:
        """Return the t interval of each figure, given the figures `(K,)`; undefined where groups show no variance.

        Figures of 0 in all groups have an interval of length 0: two arms that are equal on each group.
        """
        errors = np.sqrt(self.variance)
        errors = np.where((errors <= _ROUNDING * np.abs(values)) & (values != 0), np.nan, errors)
        reach = special.stdtrit(self.df, (1 + level) / 2) * errors
        ends = zip((values - reach).tolist(), (values + reach).tolist(), strict=True)
        return [Interval(low, high) if np.isfinite(high - low) else Interval(None, None) for low, high in ends]


@dataclass(frozen=True, eq=False)
class Stratum:
    """K figures of independent questions, such as a fold's, whole and without each of G groups.

    Attributes:
        values: the figures, `(K,)`; NaN where the stratum does not have one.
        without: the figures without each group, `(G, K)`; NaN where one is undefined.
        shares: share of each group in the questions of a figure, `(G, K)`.
        questions: number of questions.
    """

    values: Array
    without: Array
    shares: Array
    questions: int

    def parts(self) -> tuple[Array, Array, Array]:
        """Return variance, and the trace and the squared norm of it as a quadratic form of questions, `(K,)` each.

        The form has equal, independent questions in mind. For groups with shares w, and r = w / (1 - w), CR3 has the
        trace `Σ r / N` and the squared norm `((Σ r²)² - Σ r⁴ + Σ r²) / N²`, times (G - 1) / G and its square.
        """
        groups = len(self.without)
        factor = (groups - 1) / groups
        variance = factor * ((self.without - self.values) ** 2).sum(axis=0)
        if groups < 2:
            variance = np.full_like(self.values, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            r = self.shares / (1 - self.shares)
            norm = (r**2).sum(axis=0) ** 2 - (r**4).sum(axis=0) + (r**2).sum(axis=0)
            return variance, factor * r.sum(axis=0) / self.questions, norm * (factor / self.questions) ** 2


def spread(strata: Sequence[Stratum]) -> Spread:
    """Return the variance of each figure's mean over the strata that have it, with its degrees of freedom."""
    there = np.array([~np.isnan(each.values) for each in strata])
    parts = np.array([each.parts() for each in strata])
    # A stratum that lacks a figure adds nothing, where its NaN would spoil the others.
    variance, trace, norm = np.where(there[:, None], parts, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Spread(variance / there.sum(axis=0) ** 2, trace**2 / norm)


def check(level: float) -> None:
    """Raise `ConfigError` unless a level is between 0 and 1."""
    if not 0 < level < 1:
        raise ConfigError(f"level {level}: expected a number between 0 and 1, such as {LEVEL}")
