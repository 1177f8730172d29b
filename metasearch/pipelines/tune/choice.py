"""The kept line of a table of scores, and the sentence that says why, with scores where it was not chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np

from metasearch.config.measure import BALANCED, EXPANDED, Pool
from metasearch.evaluation.statistics.bounded import bounded_test
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.pipelines.tune.steps import Step
from metasearch.pipelines.tune.table import ALPHA, Table

_RANKED: Mapping[str, str] = {BALANCED: ", balanced scores", EXPANDED: ", document expansion"}


@dataclass(frozen=True)
class Standing:
    """A step with a ranking, its mean score from 0 to 1, and its difference from the base encoder, paired by question.

    `p` is the p-value of the hypothesis that no other line is better, corrected for their number.
    """

    step: Step
    pool: Pool
    mean: PairedTest
    gain: PairedTest
    p: float
    kept: bool

    def __str__(self) -> str:
        return f"{self.step}{_RANKED.get(self.pool, '')}"


@dataclass(frozen=True)
class Choice:
    """All lines of a table of so many held-out `questions` in `folds` folds, and the kept one.

    Attributes:
        standings: the simplest one first.
        kept: the kept one. Unless it is the base encoder, its mean and gain are those of nested choices: the questions
            of each fold are scored by what the other folds choose.
        behind: difference of the best one from the kept one on all questions.
        least_p: smallest p-value that its groups allow; of nested choices, unless the base encoder is kept.
        others: fold → what is chosen without it, where that is not the kept one.
    """

    measure: str
    questions: int
    folds: int
    standings: tuple[Standing, ...]
    kept: Standing
    behind: PairedTest
    least_p: float = 0.0
    others: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the choice among the lines of a table."""
        kept, folds, base = table.choose(), np.unique(table.folds).tolist(), table.scores[0]
        mean = partial(bounded_test, baseline=np.zeros(len(base)), clusters=table.groups, low=0, high=1)
        difference = partial(bounded_test, clusters=table.groups, low=-1, high=1)
        standings = tuple(
            Standing(*line, mean(own), difference(own, base), table.p(number), number == kept)
            for number, (line, own) in enumerate(zip(table.lines, table.scores, strict=True))
        )
        without = {fold: table.without(fold) for fold in folds}
        chosen = {fold: each.choose() for fold, each in without.items()}
        least_p = min(each.least_p for each in without.values()) if kept else table.least_p
        # Where nothing but the base encoder is kept, no choice flatters its score.
        by_question = [chosen[fold] if kept else 0 for fold in table.folds.tolist()]
        nested = table.scores[by_question, np.arange(len(table.folds))]
        own = replace(standings[kept], mean=mean(nested), gain=difference(nested, base))
        others = {fold: str(standings[line]) for fold, line in chosen.items() if line != kept}
        behind = difference(table.scores[table.scores.mean(axis=1).argmax()], table.scores[kept])
        return cls(table.measure, len(nested), len(folds), standings, own, behind, least_p, others)

    @property
    def best(self) -> Standing:
        """The one with the highest mean; the simplest of equal ones."""
        return max(self.standings, key=lambda each: each.mean.mean)

    def __str__(self) -> str:
        kept, trained = self.kept, not self.standings[0].kept
        gain = f", {kept.gain.shown()} against the base encoder" if trained else ""
        score = f"{self.measure} × 100 is {kept.mean.shown('')} on {self.questions} held-out questions in "
        score += f"{self.folds} folds{gain}"
        if self.least_p >= ALPHA:
            few = f"too few groups to leave the base encoder (smallest p 1/{1 / self.least_p:.0f}, not below {ALPHA})"
            score += f". Without a fold, there are {few}: these are its scores" if trained else f". There are {few}"
        elif self.others:
            found = ", ".join(f"'{name}' without fold {fold + 1}" for fold, name in self.others.items())
            nested = "; each fold is scored by what the others choose" if trained else ""
            score += f". The choice depends on the folds ({found}){nested}"
        return f"Kept: {kept}. {score}. {self._reason()}"

    def _reason(self) -> str:
        if not self.best.kept:
            than = f"{self.best}: {self.behind.shown()}"
            return f"It is the simplest that is not significantly worse than the best, {than}."
        if self.standings[0].kept:
            return "Nothing else is better." if self.standings[1:] else "Nothing else was tried."
        return "Everything simpler is significantly worse, and nothing else is better."
