"""The scores of held-out questions by step and ranking, and the one test that chooses among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import MULTILINGUAL, Pool
from metasearch.errors import DataError
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults, load, query_results_path
from metasearch.runs.rows import MEAN
from metasearch.search.tune.max_t import Gains, any_above_zero, bounded_test
from metasearch.search.tune.steps import Step

OWN, OTHERS = "own", "others"
"""Ends of the names of columns: of relevant pages in the question's language, and in other languages."""
ALPHA = 0.05
_DOUBTFUL = 0.1
"""Gain over shuffled labels below which the search without labels finds too little of what they mean."""
_FALL = 0.1
"""Loss from which a language with too few groups for a test is harmed, if it is also half of its score."""


Place = tuple[int, str, str]
"""A held-out question: fold, language and id."""
SIDES: Mapping[str, str] = {
    "": "all pages", OWN: "pages in the question's language", OTHERS: "pages in other languages"
}  # fmt: skip
"""End of a measure's name → which relevant pages it is of."""


@dataclass(frozen=True)
class Table:
    """Scores of N held-out questions by L lines; a translation counts as a question.

    Attributes:
        lines: step and pool, the simplest first, which the others are compared with; controls last.
        scores: `(L, N)`.
        folds: the fold that holds a question out, `(N,)`.
        groups: the group of a question, `(N,)`. Translations and questions with a common document are one group, as
            they do not vary independently.
        places: the questions, `(N,)`; empty where nothing is shown of them.
        sides: end of the measure's name → scores `(L, N)` of the relevant pages in the question's language, and in
            others; NaN for a question without such a page. Empty unless pages are ranked.
        accept: whether a line may be kept that harms one side, or whose labels may be wrong.
        ended: lines whose training ended early, and which have no scores here.
        known: whether the first line answers the labels better than shuffled ones, and whether they may be wrong, where
            folds that are not here tell, too.
    """

    measure: str
    lines: tuple[tuple[Step, Pool], ...]
    scores: NDArray[np.float64]
    folds: NDArray[np.int64]
    groups: tuple[str, ...]
    places: tuple[Place, ...] = ()
    sides: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    accept: bool = False
    ended: int = 0
    known: tuple[bool, bool] | None = None

    @classmethod
    def read(cls, run: RunFolder, accept: bool = False, folds: int | None = None) -> Self:
        """Return the table of a folder, or of its first folds, with the measure that its task monitors."""
        rows = [row for row in run.results() if (row["measure"], row["language"]) == (row["monitor"], MEAN)]
        rows = [row for row in rows if folds is None or row["fold"] < folds]
        cells = {(row["learner"], row["fold"]): row["task"] for row in sorted(rows, key=lambda row: row["rank"])}
        paths = {(Step.named(name), fold): results_path(run, task, name, fold) for (name, fold), task in cells.items()}
        return cls.of({cell: load(path)[0] for cell, path in paths.items()}, rows[0]["monitor"], accept)

    @classmethod
    def of(cls, results: Mapping[tuple[Step, int], QueryResults], measure: str, accept: bool = False) -> Self:
        """Return the table of results by step and fold, without steps that lack a fold of the first one."""
        steps = sorted(dict.fromkeys(step for step, _ in results), key=lambda step: step.shuffled)
        folds = sorted(fold for step, fold in results if step == steps[0])
        complete = [step for step in steps if all((step, fold) in results for fold in folds)]
        values: dict[str, dict[tuple[Step, Pool], dict[Place, float]]] = {}
        groups: dict[Place, str] = {}
        for step, fold in product(complete, folds):
            own = results[step, fold]
            for (column, pool, language, inside), scores in own.columns.items():
                name, _, side = column.partition(" ")
                if name != measure:
                    continue
                for question, value in zip(own.units[pool, language, inside], scores, strict=True):
                    line = values.setdefault(side, {}).setdefault((step, cast(Pool, pool)), {})
                    line[fold, language, question] = float(value)
                    groups[fold, language, question] = own.articles[question]
        for (step, pool), known in values[""].items():
            if missing := groups.keys() - known.keys():
                raise DataError(f"step '{step}', pool {pool}: no score of question '{min(missing)[2]}'")
        found = {
            side: np.array([[own[line].get(place, np.nan) for place in groups] for line in values[""]])
            for side, own in values.items()
        }
        scores, places = found.pop(""), tuple(groups)
        folds_of, lines = np.array([fold for fold, *_ in groups]), tuple(values[""])
        ended = sum(not step.shuffled for step in steps if step not in complete)
        ended *= sum(step == lines[0][0] for step, _ in lines)
        return cls(measure, lines, scores, folds_of, tuple(groups.values()), places, found, accept, ended)

    @cached_property
    def allowed(self) -> tuple[int, ...]:
        """The lines that may be kept, so far as controls are known: neither controls nor `refused`."""
        return tuple(i for i, (step, _) in enumerate(self.lines) if not step.shuffled and i not in self.refused)

    @cached_property
    def refused(self) -> Mapping[int, str]:
        """Line that would be kept → why it is not: labels may be wrong, its control is as good, or it harms one side.

        Such a line leaves the table, and the others are compared again.
        """
        reasons: dict[int, str] = {}
        left = [i for i, (step, _) in enumerate(self.lines) if not step.shuffled]
        while reason := self._reason_against(line := self._pick(left)):
            reasons[line] = reason
            left.remove(line)
        return reasons

    def p(self, line: int, among: Sequence[int] | None = None) -> float:
        """Return the p-value of the hypothesis that no other line is better than one; see `Gains`."""
        others = [other for other in (self.allowed if among is None else among) if other != line]
        return min(1.0, self.correction * self._gains(others, line).p())

    @property
    def correction(self) -> float:
        """Factor of p-values for the lines that ended early (Bonferroni), which would have been compared, too.

        Without it, the lines that are left would be chosen from all, and be tested as if no other had been tried.
        """
        compared = sum(not step.shuffled for step, _ in self.lines) - 1
        return 1 + self.ended / max(compared, 1)

    @property
    def least_p(self) -> float:
        """The smallest p-value that the groups allow, as each has one of two signs."""
        return 0.5 ** len({*self.groups})

    def choose(self) -> int:
        """Return the first line; if others beat it, the best of them that trains no weights.

        By step-down, a line is kept that is no better than the first with a chance of 5 % at most, whichever others are
        better. A line with labels also has to beat the best one without. One that trains weights is kept where it is
        significantly better than the best that trains none: the simplest that none of them beats.
        """
        return self._pick(self.allowed)

    @property
    def reference(self) -> int:
        """The best line without labels: the first, or one that beats it."""
        return self._label_free([self.allowed[0], *self._better(self.allowed)])

    def _better(self, lines: Sequence[int]) -> list[int]:
        """Return the lines that are significantly better than the first, by step-down."""
        first, *others = lines
        return [others[i] for i in self._gains(others, first).significant(ALPHA / self.correction)]

    def _label_free(self, lines: Sequence[int]) -> int:
        return self._best([line for line in lines if not self.lines[line][0].learner] or lines[:1])

    def _best(self, lines: Sequence[int]) -> int:
        return max(lines, key=lambda line: float(self.scores[line].mean()))

    def _pick(self, lines: Sequence[int]) -> int:
        better = self._better(lines)
        if not better:
            return lines[0]
        reference = self._label_free([lines[0], *better])
        if reference != lines[0]:
            labelled = [line for line in better if self.lines[line][0].learner]
            better = [reference, *self._better([reference, *labelled])]
        trained = [line for line in better if self.lines[line][0].trains]
        free = [line for line in better if line not in trained]
        left = [*([self._best(free)] if free else []), *trained]
        return next(line for line in left if self.p(line, left) >= ALPHA)

    def _gains(self, lines: Sequence[int], other: int) -> Gains:
        return Gains.of(self.scores[[*lines]] - self.scores[other], self.groups)

    def _beats(self, line: int, other: int) -> bool:
        return self._gains([line], other).p() < ALPHA

    @property
    def meaningful(self) -> bool:
        """Whether the first line answers the labels significantly better than shuffled ones; True if unknown."""
        return self._against_shuffled[0]

    @property
    def doubtful(self) -> bool:
        """Whether the labels may be wrong: the first line is not `meaningful`, and its true gain is below 10 points."""
        return self._against_shuffled[1]

    @cached_property
    def _against_shuffled(self) -> tuple[bool, bool]:
        other = self.control(0)
        if self.known or other is None or self.least_p >= ALPHA:
            return self.known or (True, False)
        own, shuffled = self.scores[0], self.scores[other]
        # Where the labels are no better, both are as likely to have the higher score, so that signs are exact.
        meaningful = any_above_zero((own - shuffled)[None], self.groups) < ALPHA
        highest = bounded_test(own, shuffled, self.groups, low=-1, high=1).high
        return meaningful, not meaningful and highest is not None and highest < _DOUBTFUL

    def improvable(self) -> bool:
        """Return whether a line with the score 1 for every question would be significantly better than the chosen.

        No line has a smaller p-value by signs, which is 1/2^G for the G groups that it can improve.
        """
        return any_above_zero(1 - self.scores[self.choose()][None], self.groups) < ALPHA

    def behind(self) -> list[Step]:
        """Return the trained steps that in no ranking have a higher mean than the best line without training."""
        means: dict[Step, float] = {}
        for (step, _), mean in zip(self.lines, self.scores.mean(axis=1).tolist(), strict=True):
            means[step] = max(mean, means.get(step, 0.0))
        best = max(mean for step, mean in means.items() if not step.trains and not step.shuffled)
        return [step for step, mean in means.items() if step.trains and not step.shuffled and mean <= best]

    def control(self, line: int) -> int | None:
        """Return the line of the same step and ranking with shuffled labels; None if there is none.

        One that learns from answers learned from them; others are asked for the answers of other labels.
        """
        step, pool = self.lines[line]
        wanted = (step.control, pool)
        return self.lines.index(wanted) if wanted in self.lines else None

    def uncontrolled(self) -> list[Step]:
        """Return the steps with answers that are chosen, with all folds or without one, and have no control yet."""
        tables = [self, *(self.without(fold) for fold in np.unique(self.folds).tolist())]
        chosen = [line for each in tables if self.lines[line := each.choose()][0].learns]
        return list(dict.fromkeys(self.lines[line][0] for line in chosen if self.control(line) is None))

    def _reason_against(self, line: int) -> str:
        if not line:
            return ""
        learns = self.lines[line][0].learns
        if not learns and not self.meaningful:
            return "without training, these labels are answered no better than shuffled ones"
        if learns and self.doubtful and not self.accept:
            return "the labels may be wrong, or unknown to the encoder; --accept keeps it"
        other = self.control(line)
        if other is not None and not self._beats(line, other):
            gain = 100 * float((self.scores[line] - self.scores[other]).mean())
            return f"the same with shuffled labels is not significantly worse ({gain:+.1f} against it)"
        where = "" if self.accept else self._harmed(line)
        return f"it ranks {where}; --accept keeps it" if where else ""

    def _harmed(self, line: int) -> str:
        """Return the side, or the language of questions, for which a line is significantly worse than the first.

        The test of the languages is corrected for their number. One of `untested` is harmed if it loses half of its
        score, and 10 points or more.
        """
        lost, groups = self.scores[0] - self.scores[line], np.array(self.groups)
        for side, scores in self.sides.items():
            there = ~np.isnan(scores[0])
            own = scores[0, there] - scores[line, there]
            if any_above_zero(own[None], groups[there].tolist()) < ALPHA:
                return f"{SIDES[side]} significantly worse ({-100 * own.mean():+.1f})"
        asked = np.array([language for _, language, _ in self.places])
        losses = {name: np.where(asked == name, lost, 0.0) for name in sorted({*asked.tolist()})}
        if len(losses) > 1 and any_above_zero(np.array([*losses.values()]), self.groups) < ALPHA:
            worst = min(losses, key=lambda name: any_above_zero(losses[name][None], self.groups))
            return f"pages for questions in {worst} significantly worse ({-100 * lost[asked == worst].mean():+.1f})"
        for name, count in self.untested.items():
            fall = float(lost[asked == name].mean())
            if fall >= max(_FALL, 0.5 * float(self.scores[0, asked == name].mean())):
                return f"pages for questions in {name} worse ({-100 * fall:+.1f}, with too few groups to test: {count})"
        return ""

    @cached_property
    def untested(self) -> Mapping[str, int]:
        """Language of questions → its groups, where a loss of all answers would not be significant."""
        asked, groups, found = np.array([language for _, language, _ in self.places]), np.array(self.groups), {}
        names = sorted({*asked.tolist()})
        for name in names if len(names) > 1 else ():
            everything = np.where(asked == name, self.scores[0], 0.0)
            if everything.any() and len(names) * any_above_zero(everything[None], self.groups) >= ALPHA:
                found[name] = len({*groups[asked == name].tolist()})
        return found

    def without(self, fold: int) -> "Table":
        """Return the table without the questions of a fold."""
        other = self.folds != fold
        groups = np.array(self.groups)[other].tolist()
        places = tuple(place for place in self.places if place[0] != fold)
        sides = {side: scores[:, other] for side, scores in self.sides.items()}
        return replace(
            self,
            scores=self.scores[:, other],
            folds=self.folds[other],
            groups=tuple(groups),
            places=places,
            sides=sides,
            known=self._against_shuffled,
        )


def results_path(run: RunFolder, task: str, step: Step | str, fold: int, pool: str = MULTILINGUAL) -> Path:
    """Return the file with the scores of a fold's questions by a step, and with its ranking in a pool."""
    split = f"fold-{fold}" if pool == MULTILINGUAL else f"fold-{fold}.{pool}"
    return query_results_path(run.path, task, str(step), split)


def split_rankings(results: Mapping[Pool, QueryResults]) -> dict[Pool, QueryResults]:
    """Return the results that a file of each pool has: its ranking, and in the first one all scores."""
    first, others = MULTILINGUAL, [pool for pool in results if pool != MULTILINGUAL]
    whole = replace(
        results[first],
        units={cell: ids for each in results.values() for cell, ids in each.units.items()},
        columns={cell: values for each in results.values() for cell, values in each.columns.items()},
    )
    return {first: whole} | {pool: QueryResults(ranking=results[pool].ranking) for pool in others}
