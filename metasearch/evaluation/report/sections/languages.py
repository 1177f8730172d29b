"""The language matrix: questions in one language search candidates in one language (LAReQA, section 4)."""

from metasearch.evaluation.report.charts import heatmap
from metasearch.evaluation.report.formats import slug
from metasearch.evaluation.report.main_table import UNIT, by_language, mean_notes
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.study import ScoreSelection, Study

ORDER = 40
POOLS = ("bilingual", "monolingual")


def section(inputs: Inputs) -> Section | None:
    """Return question × candidate language per arm, as heat maps; None without such scores."""
    tables = matrix_tables(inputs.study, inputs.selection.measure)
    values = [cell.value for table in tables for line in table.lines for cell in line.cells]
    charts = tuple(Chart(table, heatmap(table, "questions", "candidates", also=values)) for table in tables)
    text = "Questions of one language search the candidates of one language; the diagonal is monolingual."
    heading = "Languages of questions and candidates"
    return Section("languages", heading, (text,), charts, tuple(tables)) if tables else None


def matrix_tables(study: Study, measure: str) -> list[Table]:
    """Return a table for each arm; none for a task whose questions do not search one language at a time."""
    numbered = enumerate(study.arms, 1)
    tables = [matrix_table(study, arm, measure, f"matrix-{number}-{slug(arm.label)}") for number, arm in numbered]
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
        notes=("The diagonal is monolingual; a cell is a mean over questions, seeds and folds.", *notes),
        unit=UNIT,
    )
