"""The scores of held-out questions by step and ranking, and the one test that chooses among them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import Pool
from metasearch.errors import DataError
from metasearch.evaluation.statistics.max_t import any_above_zero
from metasearch.pipelines.tune.steps import Step
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults, load, query_results_path
from metasearch.runs.rows import MEAN

ALPHA = 0.05


@dataclass(frozen=True)
class Table:
    """Scores of N held-out questions by L lines; a translation counts as a question.

    Attributes:
        lines: step and pool, the simplest first.
        scores: `(L, N)`.
        folds: the fold that holds a question out, `(N,)`.
        groups: the group of a question, `(N,)`. Translations and questions with a common document are one group, as
            they do not vary independently.
    """

    measure: str
    lines: tuple[tuple[Step, Pool], ...]
    scores: NDArray[np.float64]
    folds: NDArray[np.int64]
    groups: tuple[str, ...]

    @classmethod
    def read(cls, run: RunFolder) -> Self:
        """Return the table of a folder, with the measure that its task monitors."""
        rows = [row for row in run.results() if (row["measure"], row["language"]) == (row["monitor"], MEAN)]
        cells = {(row["learner"], row["fold"]): row["task"] for row in sorted(rows, key=lambda row: row["rank"])}
        paths = {(Step.parse(name), fold): results_path(run, task, name, fold) for (name, fold), task in cells.items()}
        return cls.of({cell: load(path)[0] for cell, path in paths.items()}, rows[0]["monitor"])

    @classmethod
    def of(cls, results: Mapping[tuple[Step, int], QueryResults], measure: str) -> Self:
        """Return the table of results by step and fold, without steps that lack a fold of the first one."""
        steps = list(dict.fromkeys(step for step, _ in results))
        folds = sorted(fold for step, fold in results if step == steps[0])
        complete = [step for step in steps if all((step, fold) in results for fold in folds)]
        values: dict[tuple[Step, Pool], dict[tuple[int, str, str], float]] = {}
        groups: dict[tuple[int, str, str], str] = {}
        for step, fold in product(complete, folds):
            own = results[step, fold]
            for (column, pool, language, inside), scores in own.columns.items():
                if column != measure:
                    continue
                for question, value in zip(own.units[pool, language, inside], scores, strict=True):
                    values.setdefault((step, cast(Pool, pool)), {})[fold, language, question] = float(value)
                    groups[fold, language, question] = own.articles[question]
        for (step, pool), known in values.items():
            if missing := groups.keys() - known.keys():
                raise DataError(f"step '{step}', pool {pool}: no score of question '{min(missing)[2]}'")
        found = np.array([[known[place] for place in groups] for known in values.values()])
        return cls(measure, tuple(values), found, np.array([fold for fold, *_ in groups]), tuple(groups.values()))

    def p(self, line: int) -> float:
        """Return the p-value of the hypothesis that no other line is better than one; see `any_above_zero`."""
        return any_above_zero(np.delete(self.scores, line, axis=0) - self.scores[line], self.groups)

    @property
    def least_p(self) -> float:
        """The smallest p-value that the groups allow, as each has one of two signs."""
        return 0.5 ** len({*self.groups})

    def choose(self) -> int:
        """Return the first line that no other one beats significantly.

        A line is asked about only if each simpler one was beaten. So one better than the truly simplest is kept with
        a chance of 5 % at most, however many lines there are.
        """
        # There is one: nothing beats the line with the highest mean, whose p is about 0.5 or more.
        return next(line for line in range(len(self.lines)) if self.p(line) >= ALPHA)

    def without(self, fold: int) -> "Table":
        """Return the table without the questions of a fold."""
        other = self.folds != fold
        groups = np.array(self.groups)[other].tolist()
        return replace(self, scores=self.scores[:, other], folds=self.folds[other], groups=tuple(groups))


def results_path(run: RunFolder, task: str, step: Step | str, fold: int) -> Path:
    """Return the file with the scores of a fold's questions by a step."""
    return query_results_path(run.path, task, str(step), f"fold-{fold}")
