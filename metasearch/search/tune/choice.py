"""The kept line of a table of scores, and the sentence that says why, with scores where it was not chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np

from metasearch.config.measure import BALANCED, EXPANDED, Pool
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.search.tune.max_t import bounded_test, outweighed
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import ALPHA, Place, Table

_RANKED: Mapping[str, str] = {BALANCED: ", balanced scores", EXPANDED: ", document expansion"}
RANKINGS: Mapping[str, Mapping[str, bool]] = {BALANCED: {"balance": True}, EXPANDED: {"expand": True}}
"""Pool → the setting of an index that is searched in the same way."""


@dataclass(frozen=True)
class Standing:
    """A step with a ranking, its mean score from 0 to 1, and its difference from the first line, paired by question.

    `p` is the p-value of the hypothesis that no other line is better, corrected for their number. `control` is the
    difference from the same step with shuffled labels, of a line that was compared with it.
    """

    step: Step
    pool: Pool
    mean: PairedTest
    gain: PairedTest
    p: float
    kept: bool
    control: PairedTest | None = None

    def __str__(self) -> str:
        return f"{self.step}{_RANKED.get(self.pool, '')}"


@dataclass(frozen=True)
class Change:
    """Scores of some questions by the first line, and the gain of the kept one.

    `language` is that of the questions; `side` says which relevant pages count, as in `Table.sides`.
    """

    language: str
    side: str
    questions: int
    base: float
    gain: PairedTest


@dataclass(frozen=True)
class Moved:
    """A question whose score the kept line changes."""

    place: Place
    base: float
    score: float

    @property
    def gain(self) -> float:
        """Its score less the score by the first line."""
        return self.score - self.base


@dataclass(frozen=True)
class Choice:
    """All lines of a table of so many held-out `questions` in `folds` folds, and the kept one.

    Attributes:
        standings: the one that the kept one is compared with, then the simplest ones. It is the best one without labels
            if labels are kept. Intervals of gains are corrected for the number of lines (Bonferroni), so that the kept
            line's gain may be one of many.
        kept: the kept one.
        nested: its gain where the questions of each fold are scored by what the other folds choose; None where that is
            the same, or where nothing could be chosen without a fold.
        behind: difference of the best one from the kept one on all questions.
        least_p: smallest corrected p-value that its groups allow; without a fold, unless the first one is kept.
        others: fold → what is chosen without it, where that is not the kept one.
        refused: name of a line that would be kept → why it is not.
        dropped: steps that there was no time to try.
        changes: by language and side, of the kept line.
        moved: questions whose scores the kept line changes; the greatest gain first.
        untested: languages, and their groups, that are too few to test whether the kept line harms them.
        ended: lines whose training ended early.
        doubtful: whether the labels may be wrong.
    """

    measure: str
    questions: int
    folds: int
    standings: tuple[Standing, ...]
    kept: Standing
    nested: PairedTest | None
    behind: PairedTest
    least_p: float = 0.0
    others: Mapping[int, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    moved: tuple[Moved, ...] = ()
    untested: tuple[str, ...] = ()
    ended: int = 0
    doubtful: bool = False

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the choice among the lines of a table."""
        kept, folds = table.choose(), np.unique(table.folds).tolist()
        first = table.reference if table.lines[kept][0].learner else 0
        base = table.scores[first]
        mean = partial(bounded_test, baseline=np.zeros(len(base)), clusters=table.groups, low=0, high=1)
        tried = [number for number, (step, _) in enumerate(table.lines) if not step.shuffled]
        level = 1 - ALPHA / max(len(tried) - 1 + table.ended, 1)
        difference = partial(bounded_test, clusters=table.groups, low=-1, high=1, level=level)
        standings = {
            number: Standing(
                *table.lines[number], mean(table.scores[number]), difference(table.scores[number], base),
                table.p(number), number == kept, _against_control(table, number),
            )
            for number in (first, *(number for number in tried if number != first))
        }  # fmt: skip
        without = {fold: table.without(fold) for fold in folds}
        chosen = {fold: each.choose() for fold, each in without.items()}
        least_p = table.correction * (min(each.least_p for each in without.values()) if kept else table.least_p)
        others = {fold: str(standings[line]) for fold, line in chosen.items() if line != kept}
        nested = None
        if kept and others and least_p < ALPHA:
            by_question = [chosen[fold] for fold in table.folds.tolist()]
            nested = difference(table.scores[by_question, np.arange(len(base))], base, level=1 - ALPHA)
        best = max(table.allowed, key=lambda line: table.scores[line].mean())
        behind = difference(table.scores[best], table.scores[kept], level=level if kept == first else 1 - ALPHA)
        refused = {str(standings[line]): reason for line, reason in table.refused.items()}
        own = table.scores[kept]
        order = np.argsort(base - own, kind="stable").tolist() if table.places and kept else []
        moved = tuple(Moved(table.places[i], float(base[i]), float(own[i])) for i in order if own[i] != base[i])
        return cls(
            table.measure, len(base), len(folds), tuple(standings.values()), standings[kept], nested, behind, least_p,
            others, refused, (), _changes(table, first, kept, level), moved,
            tuple(f"{name} ({count})" for name, count in table.untested.items()) if kept != first else (),
            table.ended, table.doubtful,
        )  # fmt: skip

    @property
    def best(self) -> Standing:
        """The one with the highest mean of those that may be kept; the simplest of equal ones."""
        return max((each for each in self.standings if str(each) not in self.refused), key=lambda each: each.mean.mean)

    @property
    def ranking(self) -> Mapping[str, bool]:
        """Settings of an index that is searched as the kept one was scored."""
        return RANKINGS.get(self.kept.pool, {})

    @property
    def first(self) -> str:
        """What the others are compared with, in words."""
        own = str(self.standings[0])
        return f"the {own}" if own == str(Step()) else f"the search without labels ({own})"

    def __str__(self) -> str:
        kept, trained = self.kept, not self.standings[0].kept
        gain = f", {kept.gain.shown()} against {self.first}" if trained else ""
        score = f"{self.measure} × 100 is {kept.mean.shown('')} on {self.questions} held-out questions in "
        score += f"{self.folds} folds{gain}"
        if self.least_p >= ALPHA:
            few = f"too few groups to leave {self.first} (smallest p 1/{1 / self.least_p:.0f}, not below {ALPHA})"
            score += f". Without a fold, there are {few}" if trained else f". There are {few}"
        elif self.others:
            found = ", ".join(f"'{name}' without fold {fold + 1}" for fold, name in self.others.items())
            nested = f"; where the other folds choose, the gain is {self.nested.shown()}" if self.nested else ""
            score += f". The choice depends on the folds ({found}){nested}"
        refused = "".join(f" '{name}' is not kept: {reason}." for name, reason in self.refused.items())
        dropped = f" Not tried, for lack of time: {', '.join(self.dropped)}." if self.dropped else ""
        untested = f" Too few groups to test for harm: {', '.join(self.untested)}." if self.untested else ""
        return f"Kept: {kept}. {score}. {self._reason()}{self._unseen() if trained else ''}{refused}{dropped}{untested}"

    def _unseen(self) -> str:
        """Say which losses the groups cannot rule out, though the gain is significant."""
        share, loss = outweighed(self.kept.gain.mean, self.kept.gain.n, ALPHA)
        groups = self.kept.gain.n
        return (
            f" Losses of up to {100 * share:.0f} % of all questions may be in none of {groups} groups; the gain "
            f"outweighs them up to {100 * min(loss, 1):.0f} points each."
        )

    def _reason(self) -> str:
        if not self.best.kept:
            than = f"{self.best}: {self.behind.shown()}"
            return f"No other one is significantly better; the highest score has {than}."
        if self.standings[0].kept:
            tried = "Nothing else was trained for all folds." if self.ended else "Nothing else was tried."
            alone = "Nothing else may be kept." if self.refused else tried
            return "Nothing else is better." if len(self.standings) > 1 + len(self.refused) else alone
        tried = " that was tried" if self.dropped else ""
        return f"Nothing else{tried} is better."


def _against_control(table: Table, line: int) -> PairedTest | None:
    control = table.control(line)
    if control is None:
        return None
    return bounded_test(table.scores[line], table.scores[control], table.groups, low=-1, high=1)


def _changes(table: Table, first: int, kept: int, level: float) -> tuple[Change, ...]:
    found = []
    languages = np.array([language for _, language, _ in table.places])
    for language in sorted({*languages.tolist()}):
        for side, scores in {"": table.scores, **table.sides}.items():
            there = (languages == language) & ~np.isnan(scores[0])
            if there.any():
                base, own = scores[first, there], scores[kept, there]
                groups = np.array(table.groups)[there].tolist()
                gain = bounded_test(own, base, groups, low=-1, high=1, level=level)
                found.append(Change(language, side, int(there.sum()), float(base.mean()), gain))
    return tuple(found)
