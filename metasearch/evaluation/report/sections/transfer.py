"""Transfer modes, as figure 4 in the MAML-Align paper: learners by modes, means over languages."""

from dataclasses import replace

from metasearch.evaluation.report.charts import Estimate, Row, interval_chart
from metasearch.evaluation.report.main_table import (
    UNIT,
    complete,
    make_cell,
    mean_notes,
    mode_rank,
    over_languages,
    placed,
    without_mode,
)
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.study import ScoreSelection, Study

ORDER = 30


def section(inputs: Inputs) -> Section | None:
    """Return learners by transfer modes as table and chart; None where there are not two modes."""
    table = mode_table(inputs.study, inputs.selection)
    if table is None:
        return None
    rows = [Row(mode, tuple(_estimate(line.cells[i]) for line in table.lines)) for i, mode in enumerate(table.columns)]
    zero = next((arm for arm in inputs.study.arms if arm.zero_shot), None)
    mean = over_languages(inputs.study, zero, inputs.selection) if zero else None
    reference = (zero.label, 100 * mean.mean) if zero and mean else None
    learners = [line.heads[0] for line in table.lines]
    svg = interval_chart(table, rows, f"{inputs.selection.measure} × 100", reference, learners)
    return Section("transfer", "Transfer modes", charts=(Chart(table, svg),), tables=(table,))


def mode_table(study: Study, selection: ScoreSelection) -> Table | None:
    """Return learners × modes, mean ± standard deviation, values × 100; None where there are not two modes."""
    arms = [arm for arm in study.arms if arm.mode and study.by_fold(arm, selection)]
    modes = sorted({arm.mode for arm in arms if arm.mode}, key=mode_rank)
    if len(modes) < 2:
        return None
    learners = list(dict.fromkeys(map(without_mode, arms)))
    by_name = {(without_mode(arm), arm.mode): arm for arm in arms}
    full = complete(study, arms, selection)
    columns = []
    for mode in modes:
        own = [by_name.get((learner, mode)) for learner in learners]
        cells = [make_cell(over_languages(study, arm, selection)) if arm else Cell() for arm in own]
        columns.append(placed(cells, [arm in full for arm in own]))
    lines = tuple(Line((learner,), tuple(column[i] for column in columns)) for i, learner in enumerate(learners))
    title = f"{study.task}: transfer modes, {selection}"
    table = Table("modes", title, ("Learner",), tuple(modes), lines, unit=UNIT)
    first, *notes = mean_notes(study, arms, selection)
    for arm in study.arms:
        mean = over_languages(study, arm, selection) if not arm.mode else None
        if mean:
            notes.append(f"{arm.label} has no mode: {table.shown(make_cell(mean))}.")
    return replace(table, notes=(f"Mean over languages. {first}", *notes))


def _estimate(cell: Cell) -> Estimate | None:
    """Return a mean ± spread × 100 as a value with its interval."""
    if cell.value is None:
        return None
    value, spread = 100 * cell.value, 100 * (cell.spread or 0.0)
    return Estimate(value, value - spread, value + spread) if spread else Estimate(value)
