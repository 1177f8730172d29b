"""Languages: scores of each question language in each candidate language (LAReQA, section 4), and language bias."""

import math
from dataclasses import replace

from metasearch.evaluation.report.formats import slug
from metasearch.evaluation.report.main_table import UNIT, by_language, mean_notes
from metasearch.evaluation.report.section import Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.bias import measure_arm_bias
from metasearch.evaluation.study.study import Arm, ScoreSelection, Study
from metasearch.runs.per_query_results import DEPTH

ORDER = 40
NONE = "–"
POOLS = ("bilingual", "monolingual")


def section(inputs: Inputs) -> Section | None:
    """Return the language matrix of each arm, cells shaded by value, and the language bias; None without either."""
    matrices, bias = matrix_tables(inputs.study, inputs.selection.measure), bias_table(inputs.study)
    values = [cell.value for table in matrices for line in table.lines for cell in line.cells if cell.value is not None]
    tables = [replace(table, shades=(min(values), max(values))) for table in matrices]
    tables += [bias] if bias else []
    return Section("languages", "Languages of questions and candidates", tables=tuple(tables)) if tables else None


def matrix_tables(study: Study, measure: str) -> list[Table]:
    """Return question languages × candidate languages of each arm; none for a task without such scores."""
    tables = [matrix_table(study, arm, measure, f"matrix-{i}-{slug(arm.label)}") for i, arm in enumerate(study.arms, 1)]
    return [table for table in tables if table.lines]


def matrix_table(study: Study, arm: Arm, measure: str, key: str) -> Table:
    """Return an arm's question languages × candidate languages, values × 100; the diagonal is monolingual."""
    values: dict[tuple[str, str], float] = {}
    notes: list[str] = []
    for selection in (ScoreSelection(measure, pool) for pool in POOLS):
        own = by_language(study, arm, selection)
        values |= own
        if own and not notes:  # means have no spread here
            notes = [note for note in mean_notes(study, [arm], selection) if "±" not in note]
    place = {language: number for number, language in enumerate(study.languages)}
    asked, searched = (
        sorted({key[side] for key in values}, key=lambda language: (place.get(language, len(place)), language))
        for side in (0, 1)
    )
    return Table(
        key=key,
        title=f"{study.task}: {measure} of {arm.label}, question language (lines) by candidate language, test",
        heads=("Question",),
        columns=tuple(searched),
        lines=tuple(Line((a,), tuple(Cell(values.get((a, b))) for b in searched)) for a in asked),
        notes=("The diagonal is monolingual; each value is a mean over questions, seeds and folds.", *notes),
        unit=UNIT,
    )


def bias_table(study: Study) -> Table | None:
    """Return the language bias of all arms; None without rankings."""
    biases = {arm: found for arm in study.arms if (found := measure_arm_bias(study, arm))}
    if not biases:
        return None
    notes = [
        f"(observed − expected) / (maximum − expected) share of the question's language in the top {DEPTH}; expected "
        "is a random order of candidates with the same relevance; 0 is no bias.",
        "Mean over the languages of the questions, then over folds.",
    ]
    if any(count > 1 for *_, count in biases.values()):
        notes.append("± is the sample standard deviation over folds.")
    folds = len(study.folds)
    notes += [f"{arm.label}: {count} of {folds} folds." for arm, (*_, count) in biases.items() if count < folds]
    return Table(
        key="bias",
        title="Language bias in the pool of all languages",
        heads=("learner",),
        columns=("bias",),
        lines=tuple(Line((arm.label,), (_bias_cell(mean, spread),)) for arm, (mean, spread, _) in biases.items()),
        notes=tuple(notes),
        unit=UNIT,
    )


def _bias_cell(mean: float, spread: float | None) -> Cell:
    return Cell(text=NONE) if math.isnan(mean) else Cell(mean, None if spread is None or math.isnan(spread) else spread)
