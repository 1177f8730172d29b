"""The bootstrap over units: how much a figure would differ on other questions (Efron & Tibshirani 1993).

A unit is a question with its translations, so that a resample has it in all its languages or in none. If articles are
known, they are drawn with all their questions (a cluster bootstrap: Davison & Hinkley 1997, section 3.8), within strata
(the folds). Two learners are compared on the same resamples: the bootstrap is paired.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError, DataError

Array = NDArray[np.float64]

RESAMPLES = 10_000
LEVEL = 0.95
FEWEST = 100
"""Fewest resamples; with fewer, a handful decides the ends of an interval."""

_BLOCK = 2**17  # counts of a block: what a processor's cache holds
# Resamples in a block however many units there are: smaller calls to numpy would dominate the time.
_FEWEST_ROWS = 64
# On fewer of the resamples, the rest are too much of a selection for an interval.
_DEFINED = 0.95
# A variance below this share of the squared distances from the centre is rounding, not variance.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Interval:
    """A confidence interval, whose ends are None where it is undefined.

    `undefined` counts the resamples dropped because the statistic is undefined on them, such as a
    correlation where all values are the same.
    """

    low: float | None
    high: float | None
    undefined: int = 0

    def excludes(self, value: float) -> bool:
        """Return whether a value is outside; an undefined interval excludes nothing."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


def check(level: float, resamples: int) -> None:
    """Raise `ConfigError` unless the level is a probability, and at least one resample lies beyond each end of it."""
    if not 0 < level < 1:
        raise ConfigError(f"level {level}: expected a number between 0 and 1, such as {LEVEL}")
    if resamples < FEWEST:
        raise ConfigError(f"{resamples} resamples are too few for an interval: at least {FEWEST}, better {RESAMPLES}")
    if resamples * (1 - level) / 2 < 1 - 1e-9:
        raise ConfigError(f"level {level} is too extreme for {resamples} resamples; use for example {LEVEL}")


def draws(clusters: NDArray[np.int64], resamples: int, random: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of resample counts for a stratum's U units, `(b, U)`; blocks bound the memory.

    A clusters are drawn with replacement, each with all its units; `clusters` is that of each unit, 0 to A - 1, `(U,)`.
    """
    units = int(clusters.max()) + 1
    size = max(_FEWEST_ROWS, _BLOCK // len(clusters))
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        # Each row draws from a range of its own, so that one `bincount` counts all rows.
        drawn = random.integers(0, units, (rows, units)) + units * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        yield counts[:, clusters]


def interval(replicates: NDArray[np.float64], level: float = LEVEL) -> Interval:
    """Return a statistic's percentile interval (Efron & Tibshirani 1993, section 13.3).

    The share `level` of its values on the resamples, `(B,)`, lies inside. Where the statistic is undefined its value is
    NaN, and on more than 5% of the resamples so is the interval.
    """
    defined = replicates[~np.isnan(replicates)]
    undefined = len(replicates) - len(defined)
    # At least 1, since nothing has no quantiles.
    if len(defined) < max(1.0, _DEFINED * len(replicates)):
        return Interval(None, None, undefined)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), undefined)


# Means and correlations of B resamples at once, without copies: a weight says how often a resample has a row, `(B, N)`;
# ranks need whole numbers. `x` and `y` are the two sides of the rows, `(N,)`. An undefined value is NaN.


def means(weights: Array, sums: Array, sizes: Array) -> Array:
    """Return K column means over U weighted units: `Σ_u w_u s_u / Σ_u w_u n_u`, `(B, K)`.

    Args:
        weights: how often each resample has each unit, `(B, U)`.
        sums: sum of each unit's values in each column, `(U, K)`.
        sizes: number of these values, `(U, K)`; a unit that a column lacks has 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        weighted_means: Array = (weights @ sums) / (weights @ sizes)
    return weighted_means


def pearson(weights: Array, x: Array, y: Array) -> Array:
    """Return Pearson's r of the weighted rows, `(B,)`, -1 to 1; NaN where a side is constant."""
    x, y = x - x.mean(), y - y.mean()  # near the centre of each resample, so that squares lose no digits
    sums = weights @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    n, sum_x, sum_y, xx, yy, xy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        var_x, var_y = xx - sum_x**2 / n, yy - sum_y**2 / n
        # A difference of sums leaves rounding where the variance is 0, so that `> 0` would let it pass.
        defined = (var_x > _CONSTANT * xx) & (var_y > _CONSTANT * yy)
        return _ratio(xy - sum_x * sum_y / n, np.where(defined, var_x * var_y, np.nan))


def spearman(weights: Array, x: Array, y: Array) -> Array:
    """Return Spearman's ρ for weighted rows: Pearson's r on their midranks, as `pearson` does.

    The midranks of n rows have the mean (n + 1) / 2 and, with ties of t rows each, n times the variance
    `(n³ - n - Σ (t³ - t)) / 12` (Kendall & Gibbons 1990, section 3.8).
    """
    n = weights.sum(axis=1)
    (ranks_x, ties_x), (ranks_y, ties_y) = midranks(weights, x), midranks(weights, y)
    # Closed form of the squared deviations of midranks with ties of t rows; exactly 0 where a side is constant.
    var_x, var_y = ((n**3 - n - np.sum(t * t * t - t, axis=1)) / 12 for t in (ties_x, ties_y))
    middle = ((n + 1) / 2)[:, None]
    covariance = np.einsum("bn,bn,bn->b", weights, ranks_x - middle, ranks_y - middle)
    return _ratio(covariance, np.where((var_x > 0) & (var_y > 0), var_x * var_y, np.nan))


def resampled(function: Callable[[Array, Array], float]) -> Callable[[Array, Array, Array], Array]:
    """Return the weighted form of any function on `(N,)` and `(N,)`, like `pearson` for Pearson's r.

    Each resample is made and measured, which takes a hundred times as long; so metrics of other packages are compared.
    """

    def weigh(weights: Array, x: Array, y: Array) -> Array:
        values = np.full(len(weights), np.nan)
        for i, counts in enumerate(weights.astype(np.int64)):
            with suppress(DataError):  # undefined on this resample, whose value stays NaN
                values[i] = function(np.repeat(x, counts), np.repeat(y, counts))
        return values

    return weigh


def midranks(weights: Array, values: Array) -> tuple[Array, Array]:
    """Return the rank of each row among the weighted rows, `(B, N)`, and how often each value is there, `(B, G)`.

    Ranks begin at 1; a row with weight 0 has none. Equal values that occur t times in a resample, after c
    smaller ones, have the ranks c + 1 to c + t, and all get their middle, c + (t + 1) / 2. G values are distinct.
    """
    distinct, group = np.unique(values, return_inverse=True)
    if len(distinct) == len(values):
        ties = weights[:, np.argsort(values)]
    else:
        # Every distinct value has a row, so that no segment is empty, for which `reduceat` is wrong.
        ties = np.add.reduceat(
            weights[:, np.argsort(group, kind="stable")],
            np.r_[0, np.cumsum(np.bincount(group))[:-1]],
            axis=1,
        )
    # The cumulative sum is c + t; c + (t + 1) / 2 is the middle.
    ranks = np.cumsum(ties, axis=1) - (ties - 1) / 2
    return ranks[:, group], ties


def _ratio(covariance: Array, variances: Array) -> Array:
    # Rounding may carry a perfect correlation beyond 1.
    correlation: Array = np.clip(covariance / np.sqrt(variances), -1.0, 1.0)
    return correlation
