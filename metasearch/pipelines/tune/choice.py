"""Which rung is kept: the simplest one that is not significantly worse than the best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metasearch.config.measure import BALANCED, EXPANDED
from metasearch.evaluation.statistics.paired import PairedTest, paired_test
from metasearch.runs.rows import MEAN, Row

ALPHA = 0.05
_RANKED: Mapping[str, str] = {BALANCED: "scores normalised per language", EXPANDED: "neighbour averaging"}
OPTIONS: Mapping[str, str] = {BALANCED: " --balance", EXPANDED: " --expand"}
"""Pool → the option of `metasearch search` that ranks in the same way."""


@dataclass(frozen=True)
class Standing:
    """A rung with a way to rank, and how it does on the held-out folds.

    Attributes:
        rung: its name.
        pool: how candidates are ranked.
        values: the score of each fold, from 0 to 1.
        mean: their mean with its t interval.
        gain: difference from the base encoder, paired by fold.
        behind: how much the best one has more, paired by fold.
    """

    rung: str
    pool: str
    values: tuple[float, ...]
    mean: PairedTest
    gain: PairedTest
    behind: PairedTest

    @property
    def worse(self) -> bool:
        """Whether it is significantly worse than the best."""
        return self.behind.mean > 0 and (self.behind.p is None or self.behind.p < ALPHA)

    def __str__(self) -> str:
        return f"{self.rung}, {_RANKED[self.pool]}" if self.pool in _RANKED else self.rung


@dataclass(frozen=True)
class Choice:
    """All rungs with their ways to rank, the simplest first, and the one that is kept.

    Attributes:
        measure: by which they are compared.
        standings: not empty.
    """

    measure: str
    standings: tuple[Standing, ...]

    @property
    def best(self) -> Standing:
        """The one with the highest mean; the simplest of equal ones."""
        return max(self.standings, key=lambda each: each.mean.mean)

    @property
    def kept(self) -> Standing:
        """The simplest one that is not significantly worse than the best."""
        return next(each for each in self.standings if not each.worse)

    def __str__(self) -> str:
        kept, base = self.kept, self.standings[0]
        more = "" if kept == base else f", {interval(kept.gain)} against the base encoder"
        score = f"{self.measure} × 100 is {interval(kept.mean, '')} on {kept.mean.n} held-out folds{more}"
        if kept == self.best:
            return f"Kept: {kept}. {score}. Everything simpler is significantly worse, and nothing else is better."
        return (
            f"Kept: {kept}. {score}. It is the simplest that is not significantly worse than the best, {self.best}: "
            f"{interval(kept.behind)}."
        )


def choose(rows: Sequence[Row], measure: str) -> Choice:
    """Return the choice among the rungs of result rows, the simplest first, that have scores of all folds."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        if (row["measure"], row["language"]) == (measure, MEAN):
            found.setdefault(row["learner"], {}).setdefault(row["pool"], {})[row["fold"]] = row["value"]
    folds = [sorted(next(iter(by_pool.values()))) for by_pool in found.values()]
    values = {
        (rung, pool): tuple(by_fold[fold] for fold in own)
        for (rung, by_pool), own in zip(found.items(), folds, strict=True)
        if own == folds[0]  # a rung that a limit of time dropped has fewer
        for pool, by_fold in by_pool.items()
    }
    base, best = next(iter(values.values())), max(values.values(), key=sum)
    return Choice(
        measure,
        tuple(
            Standing(*name, own, paired_test(own, [0.0] * len(own)), paired_test(own, base), paired_test(best, own))
            for name, own in values.items()
        ),
    )


def interval(test: PairedTest, sign: str = "+") -> str:
    """Return a mean times 100 with its 95 % interval."""
    shown = f"{100 * test.mean:{sign}.1f}"
    if test.low is None or test.high is None:
        return shown
    return f"{shown} ({100 * test.low:{sign}.1f} to {100 * test.high:{sign}.1f})"
