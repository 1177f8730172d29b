"""The differences from the baseline: in words, as a chart of intervals, and in numbers."""

from metasearch.evaluation.report.charts import Estimate, Row, interval_chart
from metasearch.evaluation.report.comparison import comparison_table, difference, language_table, mark_note, percent
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.svg import minus
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.bootstrap import Interval
from metasearch.evaluation.statistics.folds import TrainingInterval
from metasearch.evaluation.study.compare import Comparison

ORDER = 20
_TRAINING, _MODELS = "retraining", "these models"


def section(inputs: Inputs) -> Section:
    """Return the differences between all arms and the baseline, or the reason for none."""
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
        columns=("difference", "from", "to", "these models from", "these models to"),
        lines=tuple(
            Line(
                (e.arm.label,), (Cell(e.difference, mark=e.mark), *map(Cell, (*_ends(e.training), *_ends(e.interval))))
            )
            for e in comparison.arms
        ),
        notes=(_bars(comparison), mark_note(comparison)),
    )
    series = [name for name, there in ((_TRAINING, _any_training(comparison)), (_MODELS, True)) if there]
    rows = []
    for e in comparison.arms:
        main = e.training or e.interval
        low, high = (None if end is None else 100 * end for end in _ends(main))
        text = f"{100 * e.difference:+z.2f}" + ("" if low is None else f" [{low:z.2f}, {high:z.2f}]")
        both = (e.training, e.interval) if _TRAINING in series else (e.interval,)
        rows.append(Row(e.arm.label, tuple(_estimate(e.difference, each) for each in both), f"{minus(text)}{e.mark}"))
    name = f"{comparison.measure} minus {baseline}, × 100"
    return Chart(table, interval_chart(table, rows, name, (baseline, 0.0), series))


def _any_training(comparison: Comparison) -> bool:
    return any(each.training for each in comparison.arms)


def _bars(comparison: Comparison) -> str:
    level = percent(comparison.level)
    first = f"{level} intervals over retraining, " if _any_training(comparison) else ""
    return (
        f"Bars are {first}{'and below them ' * bool(first)}{level} intervals for these models; a marker is hollow "
        "if the interval includes 0."
    )


def _ends(interval: Interval | TrainingInterval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _estimate(difference: float, interval: Interval | TrainingInterval | None) -> Estimate | None:
    """Return a difference × 100 with its interval, or None."""
    if interval is None:
        return None
    low, high = (None if end is None else 100 * end for end in _ends(interval))
    return Estimate(100 * difference, low, high, hollow=not interval.excludes(0.0))
