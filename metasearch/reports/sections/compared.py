"""The differences from the baseline: in words, as a chart of intervals, and in numbers."""

from metasearch.reports.charts.intervals import Estimate, Row, interval_chart
from metasearch.reports.charts.svg import minus
from metasearch.reports.comparison import comparison_table, language_table, mark_note, percent
from metasearch.reports.section import Chart, Inputs, Section
from metasearch.reports.table import Cell, Line, Table
from metasearch.reports.verdict import difference
from metasearch.study.compare import Comparison

ORDER = 20


def section(inputs: Inputs) -> Section:
    """Return the differences of all arms from the baseline, or why there are none."""
    comparison, why = inputs.comparison, inputs.not_compared
    if comparison is None:
        return Section("compared", "Comparison", why or ("There is nothing to compare.",))
    sentences = [difference(each, comparison.baseline) for each in comparison.arms]
    tables = comparison_table(comparison), language_table(comparison)
    return Section("compared", "Comparison", (*sentences, *why), (_chart(comparison),), tables)


def _chart(comparison: Comparison) -> Chart:
    baseline = comparison.baseline.label
    table = Table(
        key="differences",
        title=f"Difference from {baseline}",
        heads=("",),
        columns=("difference", "from", "to"),
        lines=tuple(
            Line((e.arm.label,), (Cell(e.difference, mark=e.mark), Cell(e.interval.low), Cell(e.interval.high)))
            for e in comparison.arms
        ),
        notes=(
            f"Bars are {percent(comparison.level)} intervals of the paired bootstrap over questions; "
            "a marker is hollow where 0 is inside.",
            mark_note(comparison),
        ),
    )
    rows = []
    for e in comparison.arms:
        low, high = (None if end is None else 100 * end for end in (e.interval.low, e.interval.high))
        text = f"{100 * e.difference:+z.2f}" + ("" if low is None else f" [{low:z.2f}, {high:z.2f}]")
        estimate = Estimate(100 * e.difference, low, high, hollow=not e.interval.excludes(0.0))
        rows.append(Row(e.arm.label, (estimate,), f"{minus(text)}{e.mark}"))
    name = f"{comparison.measure} less that of {baseline}, × 100"
    return Chart(table, interval_chart(table, rows, name, (baseline, 0.0)))
