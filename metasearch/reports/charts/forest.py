"""Differences with their intervals, one a row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.reports.charts.chart import Chart
from metasearch.reports.charts.frame import ROW, draw_level
from metasearch.reports.charts.line import empty
from metasearch.reports.charts.scale import Axis, axis
from metasearch.reports.charts.svg import FONT, Drawing, minus, shorten, width
from metasearch.reports.table import Cell, Line, Table

# Pixels of the chart, and of a row: a line of text, and below it the interval.
_WIDE, _STEP = 460.0, 46.0


@dataclass(frozen=True)
class Estimate:
    """A difference from the baseline.

    Attributes:
        label: what is compared.
        value: the difference.
        low: end of its interval; None where there is none.
        high: likewise.
        mark: behind the value, explained in the notes.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    mark: str = ""


def forest(
    key: str,
    title: str,
    estimates: Sequence[Estimate],
    name: str,
    notes: tuple[str, ...] = (),
    scale: float = 100.0,
    decimals: int = 2,
) -> Chart:
    """Return a forest plot: a row for each difference, its interval, and a line where there is none.

    An interval that excludes 0 has a full marker, the others a hollow one.

    Args:
        key: of the chart.
        title: what it shows.
        estimates: in the order of the rows; one that is not finite has a row that says so.
        name: of the axis, with unit.
        notes: what the intervals are.
        scale: what values are shown times.
        decimals: behind the point.
    """
    lines = tuple(Line((e.label,), (Cell(_known(e.value), mark=e.mark), *_ends(e))) for e in estimates)
    table = Table(key, title, ("",), ("difference", "from", "to"), lines, notes, scale, decimals)
    values = [scale * v for e in estimates for v in (e.value, e.low, e.high) if v is not None and math.isfinite(v)]
    if not values:
        return Chart(key, title, empty(title, "There are no differences to draw."), table)
    texts = [_text(e, scale, decimals) for e in estimates]
    x = axis((0.0, *values), 20, _WIDE - 20, 6)
    bottom = _STEP * len(estimates) + 6
    words = f"{name}. " + " ".join(f"{e.label}: {text}." for e, text in zip(estimates, texts, strict=True))
    drawing = Drawing(_WIDE, bottom + 2 * ROW + 6, title, words)
    for i, (estimate, text) in enumerate(zip(estimates, texts, strict=True)):
        _row(drawing, estimate, text, x, _STEP * i, scale)
    draw_level(drawing, x, 2, bottom, name)
    return Chart(key, title, drawing.markup(), table)


def _row(drawing: Drawing, estimate: Estimate, text: str, x: Axis, top: float, scale: float) -> None:
    """Draw a row: label and values in words, below them interval and marker."""
    y = top + _STEP * 0.7
    for tick in x.ticks:
        drawing.line(x.at(tick), y - 11, x.at(tick), y + 12, "zero" if tick == 0 else "grid")
    drawing.text(_WIDE, top + FONT + 3, text, "value", "end")
    drawing.text(0, top + FONT + 3, shorten(estimate.label, _WIDE - width(text) - 10), "label")
    low, high = (None if (end := _known(e)) is None else scale * end for e in (estimate.low, estimate.high))
    if low is not None and high is not None:
        drawing.line(x.at(low), y, x.at(high), y, "interval c0")
        for end in (low, high):
            drawing.line(x.at(end), y - 4, x.at(end), y + 4, "interval c0")
    if math.isfinite(estimate.value):
        away = low is not None and high is not None and (low > 0 or high < 0)
        drawing.dot(x.at(scale * estimate.value), y, "full c0" if away else "hollow c0")


def _text(estimate: Estimate, scale: float, decimals: int) -> str:
    """Return a difference as text: `+0.61 [0.20, 1.03]*`."""
    if not math.isfinite(estimate.value):
        return "not known"
    shown = f"{scale * estimate.value:+z.{decimals}f}"
    if estimate.low is not None and estimate.high is not None:
        shown += f" [{scale * estimate.low:z.{decimals}f}, {scale * estimate.high:z.{decimals}f}]"
    return f"{minus(shown)}{estimate.mark}"


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _ends(estimate: Estimate) -> tuple[Cell, Cell]:
    return Cell(_known(estimate.low)), Cell(_known(estimate.high))
