"""How many seeds would tell a difference apart, from the variances that a study has shown."""

from collections.abc import Callable
from dataclasses import dataclass

from scipy import special  # scipy.stats takes a second or two to import

from metasearch.study.statistics.folds import Components

POWER = 0.8
"""Chance of finding a difference that is there (Cohen 1988)."""
MOST = 100
"""Seeds beyond which no study is planned."""


@dataclass(frozen=True)
class SeedsNeeded:
    """How many seeds a difference needs, on as many folds as a study has.

    Attributes:
        difference: to be told apart from 0.
        power: chance that its interval then excludes 0.
        fewest: seeds, if all variation of training is that of seeds as far as is known; None where no number up to
            `MOST` is enough.
        certain: whether the study had several seeds on a fold, so that it knows what seeds do.
        smallest: difference that `MOST` seeds would tell apart with this power; None where it is unbounded.
    """

    difference: float
    power: float
    fewest: int | None
    certain: bool
    smallest: float | None


def seeds_needed(found: Components, folds: int, difference: float, level: float, power: float = POWER) -> SeedsNeeded:
    """Return the seeds that a difference needs, by the power of the t-test over folds (noncentral t).

    The variance of the difference is `(σ²_F + σ²_Q + σ²_S / S) / F` with F - 1 degrees of freedom; of an only fold its
    `σ²_Q + σ²_S / S` with S - 1, since more than its seeds is not known. With one seed seen, σ²_F is taken as 0 and all
    variation of training as σ²_S, so that what is found is a lower bound.

    >>> seeds_needed(Components(training=1.0, seeds=1.0, questions=0.0), folds=5, difference=1.0, level=0.95).fewest
    3
    """
    seeds = found.training if found.seeds is None else found.seeds
    constant = found.training - seeds + found.questions

    def chance(count: int, of: float) -> float:
        df = folds - 1 if folds > 1 else count - 1
        return _power(of / max((constant + seeds / count) / folds, _TINY) ** 0.5, df, level) if df else 0.0

    fewest = next((count for count in range(1, MOST + 1) if chance(count, difference) >= power), None)
    return SeedsNeeded(
        difference, power, fewest, found.seeds is not None, _smallest(lambda of: chance(MOST, of), power)
    )


_TINY = 1e-30
"""A variance for what shows none, so that every difference is told apart."""


def _power(shift: float, df: float, level: float) -> float:
    """Return the chance that t is above its critical value, t noncentral with a shift in standard errors.

    The other side, a difference found in the wrong direction, is left out: no chance near `POWER` has any of it.
    """
    critical = float(special.stdtrit(df, (1 + level) / 2))
    if shift > 30 + critical:  # the series of the noncentral t does not converge there
        return 1.0
    return 1 - float(special.nctdtr(df, shift, critical))


def _smallest(chance: Callable[[float], float], power: float) -> float | None:
    """Return the smallest difference with such a chance, by bisection; None where none up to 1 has it."""
    low, high = 0.0, 1.0
    if chance(high) < power:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high
