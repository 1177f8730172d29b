"""The choice of a step: the simplest one that no other beats significantly, and its scores where it was not chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import BALANCED, EXPANDED, Pool
from metasearch.errors import DataError
from metasearch.evaluation.statistics.bounded import bounded_test
from metasearch.evaluation.statistics.max_t import any_above_zero
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.pipelines.tune.steps import Step
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults, load, query_results_path
from metasearch.runs.rows import MEAN

ALPHA = 0.05
_RANKED: Mapping[str, str] = {BALANCED: "balanced scores", EXPANDED: "document expansion"}

Scores = Mapping[str, Mapping[int, QueryResults]]
"""Name of a step → fold → the scores of the questions that the fold holds out; the simplest step first."""


@dataclass(frozen=True)
class Standing:
    """A step with a ranking, and its scores on held-out questions.

    Attributes:
        step: the step.
        pool: way to rank the candidates.
        mean: mean score from 0 to 1, with an interval over groups.
        gain: difference from the base encoder, paired by question.
        p: p-value of the hypothesis that no other line is better, corrected for their number.
    """

    step: Step
    pool: Pool
    mean: PairedTest
    gain: PairedTest
    p: float

    def __str__(self) -> str:
        return f"{self.step}, {_RANKED[self.pool]}" if self.pool in _RANKED else str(self.step)


@dataclass(frozen=True)
class Choice:
    """All steps with their rankings, and the kept one; a translation counts as a question.

    Attributes:
        measure: name of the measure.
        questions: number of held-out questions.
        folds: number of folds.
        standings: the simplest one first.
        kept: the kept one. Unless it is the base encoder, its mean and gain are those of nested choices: the questions
            of each fold are scored by what the other folds choose.
        behind: difference of the best one from the kept one on all questions.
        others: fold → what is chosen without it, where that is not the kept one.
    """

    measure: str
    questions: int
    folds: int
    standings: tuple[Standing, ...]
    kept: Standing
    behind: PairedTest
    others: Mapping[int, str] = field(default_factory=dict)

    @property
    def best(self) -> Standing:
        """The one with the highest mean; the simplest of equal ones."""
        return max(self.standings, key=lambda each: each.mean.mean)

    def is_kept(self, line: Standing) -> bool:
        """Return whether a standing is the kept one."""
        return (line.step, line.pool) == (self.kept.step, self.kept.pool)

    def __str__(self) -> str:
        kept, trained = self.kept, not self.is_kept(self.standings[0])
        gain = f", {interval(kept.gain)} against the base encoder" if trained else ""
        score = f"{self.measure} × 100 is {interval(kept.mean, '')} on {self.questions} held-out questions in "
        score += f"{self.folds} folds{gain}"
        if self.others:
            found = ", ".join(f"'{name}' without fold {fold + 1}" for fold, name in self.others.items())
            nested = "; each fold is scored by what the others choose" if trained else ""
            score += f". The choice depends on the folds ({found}){nested}"
        return f"Kept: {kept}. {score}. {self._reason()}"

    def _reason(self) -> str:
        if len(self.standings) == 1:
            return "Nothing else was tried."
        if not self.is_kept(self.best):
            behind = interval(self.behind)
            return f"It is the simplest that is not significantly worse than the best, {self.best}: {behind}."
        if self.is_kept(self.standings[0]):
            return "Nothing else is better."
        return "Everything simpler is significantly worse, and nothing else is better."


@dataclass(frozen=True)
class Table:
    """Scores of N held-out questions by L lines.

    Attributes:
        lines: step and pool, the simplest first.
        scores: `(L, N)`.
        folds: the fold that holds a question out, `(N,)`.
        groups: the group of a question, `(N,)`. Translations and questions with a common document are one group, as
            they do not vary independently.
    """

    lines: tuple[tuple[Step, Pool], ...]
    scores: NDArray[np.float64]
    folds: NDArray[np.int64]
    groups: tuple[str, ...]

    @classmethod
    def of(cls, scores: Scores, measure: str) -> Self:
        """Return the table of the steps that have the same folds as the first one."""
        values: dict[tuple[Step, Pool], dict[tuple[int, str, str], float]] = {}
        groups: dict[tuple[int, str, str], str] = {}
        folds = next(iter(scores.values())).keys()
        complete = {Step.parse(name): by_fold for name, by_fold in scores.items() if by_fold.keys() == folds}
        for step, fold in product(complete, sorted(folds)):
            results = complete[step][fold]
            for (column, pool, language, inside), own in results.columns.items():
                if column != measure:
                    continue
                for question, value in zip(results.units[pool, language, inside], own, strict=True):
                    values.setdefault((step, cast(Pool, pool)), {})[fold, language, question] = float(value)
                    groups[fold, language, question] = results.articles[question]
        for line, known in values.items():
            if missing := groups.keys() - known.keys():
                raise DataError(f"step '{line[0]}', pool {line[1]}: no score of question '{min(missing)[2]}'")
        found = np.array([[known[place] for place in groups] for known in values.values()])
        return cls(tuple(values), found, np.array([place[0] for place in groups]), tuple(groups.values()))

    def p(self, line: int) -> float:
        """Return the p-value of the hypothesis that no other line is better than one; see `any_above_zero`."""
        return any_above_zero(np.delete(self.scores, line, axis=0) - self.scores[line], self.groups)

    def choose(self) -> int:
        """Return the first line that no other one beats significantly.

        A line is asked about only if each simpler one was beaten. So one better than the truly simplest is kept with
        a chance of 5 % at most, however many lines there are.
        """
        # There is one: nothing beats the line with the highest mean, whose p is about 0.5 or more.
        return next(line for line in range(len(self.lines)) if self.p(line) >= ALPHA)

    def without(self, fold: int) -> "Table":
        """Return the table without the questions of a fold."""
        others = self.folds != fold
        groups = tuple(group for group, other in zip(self.groups, others, strict=True) if other)
        return replace(self, scores=self.scores[:, others], folds=self.folds[others], groups=groups)

    def standing(self, line: int, own: NDArray[np.float64]) -> Standing:
        """Return where a line stands with its `own` scores of all questions, `(N,)`."""
        mean = bounded_test(own, np.zeros(len(own)), self.groups, 0, 1)
        return Standing(*self.lines[line], mean, self.difference(own, self.scores[0]), self.p(line))

    def difference(self, own: NDArray[np.float64], other: NDArray[np.float64]) -> PairedTest:
        """Return the difference between scores of all questions, `(N,)`."""
        return bounded_test(own, other, self.groups, -1, 1)


def choose(scores: Scores, measure: str) -> Choice:
    """Return the choice among the steps that have scores of all folds."""
    return decide(Table.of(scores, measure), measure)


def decide(table: Table, measure: str) -> Choice:
    """Return the choice among the lines of a table."""
    kept, folds = table.choose(), np.unique(table.folds).tolist()
    standings = tuple(table.standing(line, own) for line, own in enumerate(table.scores))
    chosen = {fold: table.without(fold).choose() for fold in folds}
    # Where nothing but the base encoder is kept, no choice flatters its score.
    nested = table.scores[[chosen[fold] if kept else 0 for fold in table.folds.tolist()], np.arange(len(table.folds))]
    others = {fold: str(standings[line]) for fold, line in chosen.items() if line != kept}
    behind = table.difference(table.scores[table.scores.mean(axis=1).argmax()], table.scores[kept])
    return Choice(measure, len(nested), len(folds), standings, table.standing(kept, nested), behind, others)


def fold_label(fold: int) -> str:
    """Return the name of a fold in the files of its question scores."""
    return f"fold-{fold}"


def read_choice(run: RunFolder) -> Choice:
    """Return the choice among the steps whose scores a folder holds, by the measure that its task monitors."""
    rows = [row for row in run.results() if (row["measure"], row["language"]) == (row["monitor"], MEAN)]
    found: dict[str, dict[int, QueryResults]] = {}
    for row in sorted(rows, key=lambda row: row["rank"]):
        by_fold = found.setdefault(row["learner"], {})
        if row["fold"] not in by_fold:
            path = query_results_path(run.path, row["task"], row["learner"], fold_label(row["fold"]))
            by_fold[row["fold"]] = load(path)[0]
    return choose(found, rows[0]["monitor"])


def interval(test: PairedTest, sign: str = "+") -> str:
    """Return a mean times 100 with its 95 % interval."""
    shown = f"{100 * test.mean:{sign}.1f}"
    if test.low is None or test.high is None:
        return shown
    return f"{shown} ({100 * test.low:{sign}.1f} to {100 * test.high:{sign}.1f})"
