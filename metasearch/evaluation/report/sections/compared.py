"""The differences from the baseline: in words, as a chart of intervals, and in numbers."""

from metasearch.evaluation.report.charts import Estimate, Row, interval_chart
from metasearch.evaluation.report.comparison import comparison_table, language_table, mark_note, percent
from metasearch.evaluation.report.formats import minus
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.bootstrap import Interval
from metasearch.evaluation.statistics.folds import TrainingInterval
from metasearch.evaluation.study.compare import Comparison

ORDER = 20


def section(inputs: Inputs) -> Section:
    """Return the differences between all arms and the baseline, or the reason for none."""
    comparison, why = inputs.comparison, inputs.not_compared
    if comparison is None:
        return Section("compared", "Comparison", why or ("There is nothing to compare.",))
    tables = comparison_table(comparison), language_table(comparison)
    return Section("compared", "Comparison", why, (_chart(comparison),), tables)


def _chart(comparison: Comparison) -> Chart:
    baseline, level = comparison.baseline.label, percent(comparison.level)
    trained = any(each.training for each in comparison.arms)
    first = f"{level} intervals over retraining, and below them " if trained else ""
    bars = f"Bars are {first}{level} intervals for fixed models; a marker is hollow if the interval includes 0."
    lines, rows = [], []
    for e in comparison.arms:
        intervals = (e.training, e.interval) if trained else (e.interval,)
        low, high = _ends(e.training or e.interval)
        text = f"{100 * e.difference:+z.2f}" + ("" if low is None else f" [{low:z.2f}, {high:z.2f}]")
        lines.append(Line((e.arm.label,), (Cell(e.difference, mark=e.mark), Cell(text=text))))
        rows.append(Row(e.arm.label, tuple(_estimate(e.difference, i) for i in intervals), f"{minus(text)}{e.mark}"))
    table = Table(
        key="differences",
        title=f"Difference from {baseline}",
        heads=("",),
        columns=("difference", f"{level} interval"),
        lines=tuple(lines),
        notes=(bars, mark_note(comparison)),
    )
    name = f"{comparison.measure} minus {baseline}, × 100"
    series = ["retraining", "fixed models"] if trained else ["fixed models"]
    return Chart(table, interval_chart(table, rows, name, (baseline, 0.0), series))


def _ends(interval: Interval | TrainingInterval) -> tuple[float | None, float | None]:
    """Return the ends × 100."""
    low, high = (None if end is None else 100 * end for end in (interval.low, interval.high))
    return low, high


def _estimate(difference: float, interval: Interval | TrainingInterval | None) -> Estimate | None:
    """Return a difference × 100 with its interval, or None."""
    if interval is None:
        return None
    return Estimate(100 * difference, *_ends(interval), hollow=not interval.excludes(0.0))
