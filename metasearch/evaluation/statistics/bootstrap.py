"""The bootstrap over units: how much a figure would differ on other questions (Efron & Tibshirani 1993).

A unit is a question with its translations, so that a resample has it in all its languages or in none. If articles are
known, they are drawn with all their questions (a cluster bootstrap: Davison & Hinkley 1997, section 3.8), within strata
(the folds). Two learners are compared on the same resamples: the bootstrap is paired.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import ConfigError

RESAMPLES = 10_000
LEVEL = 0.95
FEWEST = 100
"""Fewest resamples; with fewer, a handful decides the ends of an interval."""

_BLOCK = 2**17  # counts of a block: what a processor's cache holds
# Resamples in a block however many units there are: smaller calls to numpy would dominate the time.
_FEWEST_ROWS = 64
# On fewer of the resamples, the rest are too much of a selection for an interval.
_DEFINED = 0.95


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
