"""The differences from the baseline: in words, as a chart of intervals, and in numbers."""

from metasearch.evaluation.report.comparison import comparison_table, language_table, mark_note, percent
from metasearch.evaluation.report.formats import minus
from metasearch.evaluation.report.section import Chart, Inputs, Row, Section
from metasearch.evaluation.study.compare import ArmComparison, Comparison

ORDER = 20


def section(inputs: Inputs) -> Section:
    """Return the differences between all arms and the baseline, or the reason for none."""
    comparison = inputs.comparison
    if comparison is None:
        return Section("compared", "Comparison", (inputs.not_compared,))
    tables = comparison_table(comparison), language_table(comparison)
    return Section("compared", "Comparison", charts=(_chart(comparison),), tables=tables)


def _chart(comparison: Comparison) -> Chart:
    baseline, level = comparison.reference, percent(comparison.level)
    trained = any(each.training for each in comparison.arms)
    first = f"{level} intervals over retraining, and below them " if trained else ""
    bars = f"Bars are {first}{level} intervals for fixed models; a marker is hollow if the interval includes 0."
    return Chart(
        key="differences",
        title=f"{comparison.measure} minus {baseline}, × 100",
        rows=tuple(_row(each, trained) for each in comparison.arms),
        series=("retraining", "fixed models") if trained else ("fixed models",),
        notes=(bars, mark_note(comparison)),
        reference=baseline,
    )


def _row(each: ArmComparison, trained: bool) -> Row:
    intervals = (each.training, each.interval) if trained else (each.interval,)
    main, text = each.main, f"{100 * each.difference:+z.2f}"
    if main.low is not None and main.high is not None:
        text += f" [{100 * main.low:z.2f}, {100 * main.high:z.2f}]"
    return Row(each.arm.label, each.difference, intervals, f"{minus(text)}{each.mark}")
