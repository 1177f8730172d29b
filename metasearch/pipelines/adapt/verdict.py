"""Whether an adapter is kept, by its scores on held-out folds, and the sentences that say so."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from metasearch.evaluation.statistics.bounded import bounded_test
from metasearch.evaluation.statistics.max_t import any_above_zero
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.pipelines.tune.table import ALPHA, Table

ADAPTER = "query adapter"


@dataclass(frozen=True)
class Change:
    """Held-out queries in a language: their number, mean score without the adapter, its difference, and p of a loss."""

    language: str
    queries: int
    base: float
    gain: PairedTest
    p_loss: float


@dataclass(frozen=True)
class Verdict:
    """Held-out scores from 0 to 1, and why the adapter is kept or not."""

    measure: str
    folds: int
    base: PairedTest
    gain: PairedTest
    control: PairedTest | None
    changes: tuple[Change, ...]
    kept: bool
    reason: str

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the verdict on the second line of a table against the first one; a third one is its control.

        It is kept if it is significantly better than the search without it and than the same training on shuffled
        labels, and significantly worse neither in one language of queries (with Bonferroni's correction), nor for pages
        in the language of the query or in others.
        """
        base, own, *control = table.scores
        gain = bounded_test(own, base, table.groups, low=-1, high=1)
        against = bounded_test(own, control[0], table.groups, low=-1, high=1) if control else None
        changes, languages = [], np.array([language for _, language, _ in table.places])
        for language in np.unique(languages).tolist():
            there = languages == language
            groups = np.array(table.groups)[there].tolist()
            change = bounded_test(own[there], base[there], groups, low=-1, high=1)
            p = any_above_zero((base - own)[there][None], groups)
            changes.append(Change(language, int(there.sum()), float(base[there].mean()), change, p))
        harmed = [each for each in changes if each.p_loss < ALPHA / len(changes)]
        if table.choose() != 1:
            reason = table.refused.get(1, "") or _not_better(table)
        else:
            reason = "".join(f"queries in '{each.language}' lose {each.gain.shown()}" for each in harmed[:1])
        before = bounded_test(base, np.zeros_like(base), table.groups, low=0, high=1)
        count = len(np.unique(table.folds))
        return cls(table.measure, count, before, gain, against, tuple(changes), not reason, reason)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        queries = sum(each.queries for each in self.changes)
        control = f", {self.control.shown()} against the same training on shuffled labels" if self.control else ""
        why = f"Not kept: {self.reason}." if self.reason else "Kept."
        return (
            f"{why} {self.measure} × 100 is {self.base.shown('')} without it on {queries} held-out queries in "
            f"{self.folds} folds, and {self.gain.shown()} with it{control}."
        )

    @property
    def lines(self) -> list[str]:
        """Each language of the queries, in a line."""
        return [
            f"{each.language}: {each.queries} queries, {100 * each.base:.1f}, {each.gain.shown()}"
            for each in self.changes
        ]


def _not_better(table: Table) -> str:
    if table.least_p >= ALPHA:
        return f"too few pages with labels to show a gain (smallest p 1/{1 / table.least_p:.0f}, not below {ALPHA})"
    return "it is not significantly better than the search without it"
