"""Single questions on which a learner and the baseline differ most."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from metasearch.evaluation.report.section import Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.study import Arm, Scored, ScoreSelection, Study
from metasearch.runs.per_query_results import Ranking

ORDER = 70
COUNT = 20
"""Lines of a table."""
POOL = "multilingual"
_TEXT = 160
"""Characters of a text that are shown."""

Asked = tuple[str, str]
"""Id and language of a question."""


def section(inputs: Inputs) -> Section | None:
    """Return a table for each learner and its baseline; None without rankings of two learners."""
    study, compared = inputs.study, inputs.comparison.arms if inputs.comparison else ()
    made = (question_table(study, each.against, each.arm, inputs.selection.measure) for each in compared)
    tables = tuple(table for table in made if table)
    return Section("questions", "Questions that learners differ on", tables=tables) if tables else None


def question_table(study: Study, baseline: Arm, other: Arm, measure: str, count: int = COUNT) -> Table | None:
    """Return the questions with the largest difference, each in the language with its largest difference.

    None where the task ranks nothing, or both learners have no fold in common.
    """
    selection = ScoreSelection(study.select(measure).measure, POOL)
    sides = [study.by_fold(arm, selection) for arm in (baseline, other)]
    folds = sorted(sides[0].keys() & sides[1].keys())
    if not folds or any(run.questions.ranking is None for side in sides for fold in folds for run in side[fold]):
        return None
    values = {fold: [_values(side[fold], selection) for side in sides] for fold in folds}
    largest: dict[tuple[int, str], tuple[float, str]] = {}
    for fold, (before, after) in values.items():
        for unit, language in sorted(before.keys() & after.keys()):
            size = abs(after[unit, language] - before[unit, language])
            if size > largest.get((fold, unit), (-1.0, ""))[0]:
                largest[fold, unit] = size, language
    # Ties are broken by fold and id, so that the same study gives the same page.
    chosen = sorted(largest, key=lambda key: (-largest[key][0], key))[:count]
    lines = [
        _question_line(fold, (unit, largest[fold, unit][1]), [side[fold][0] for side in sides], values[fold])
        for fold, unit in chosen
    ]
    name = f"AP{measure.removeprefix('map')}" if measure.startswith("map") else measure
    names = baseline.label, other.label
    return Table(
        key=f"questions-{study.arms.index(other)}",
        title=f"Questions that {names[0]} and {names[1]} differ on most",
        heads=("language", "fold"),
        columns=(
            "question",
            *(f"{what}, {label}" for what in (name, "answers at rank", "first candidate") for label in names),
        ),
        lines=tuple(lines),
        notes=(
            f"The {len(lines)} questions of {len(largest)} with the largest difference of {name} (mean over seeds), "
            "each in the language with its largest difference. The pool has candidates of all languages.",
            f"Ranks and candidates are from the first seed; ✓: an answer. Texts end after {_TEXT} characters.",
        ),
        unit="× 100",
    )


def _values(runs: Sequence[Scored], selection: ScoreSelection) -> dict[Asked, float]:
    """Return each question's value per language, mean over seeds."""
    values: dict[Asked, list[float]] = defaultdict(list)
    for run in runs:
        for cell, ids in run.questions.units.items():
            if cell[0] == selection.pool:
                for unit, value in zip(ids, run.questions.columns[selection.measure, *cell], strict=True):
                    values[unit, cell[1]].append(float(value))
    return {asked: float(np.mean(each)) for asked, each in values.items()}


def _question_line(fold: int, asked: Asked, runs: Sequence[Scored], values: Sequence[Mapping[Asked, float]]) -> Line:
    ranks, firsts = [], []
    for run in runs:
        ranking = run.questions.ranking
        assert isinstance(ranking, Ranking)
        row = next(i for i, text in enumerate(ranking.questions) if (text.id, text.language) == asked)
        own = slice(int(ranking.offsets[row]), int(ranking.offsets[row + 1]))
        ranks.append(Cell(text=", ".join(map(str, ranking.ranks[own].tolist()))))
        first = int(ranking.top[row, 0])
        mark = "✓ " if first in ranking.relevant[own] else ""
        firsts.append(Cell(text=mark + _shorten(ranking.candidates[first].text)))
        text = ranking.questions[row].text
    cells = (Cell(text=_shorten(text)), *(Cell(own[asked]) for own in values), *ranks, *firsts)
    return Line((asked[1], str(fold)), cells)


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"
