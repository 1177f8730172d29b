"""Values with their intervals on a level axis, in rows: differences of learners, or in each row a value of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from metasearch.reports.charts.axis import Axis, axis
from metasearch.reports.charts.svg import COLOURS, FONT, Drawing, empty, shorten, width
from metasearch.reports.table import Table

# Pixels of the chart, of a row's label, of each value below it, and of the gap to the next row.
_WIDE, _LABEL, _VALUE, _GAP = 460.0, 22.0, 16.0, 8.0


@dataclass(frozen=True)
class Estimate:
    """A finite value in the unit of the axis, and the ends of its interval where it has one.

    Its marker is hollow, such as where the interval holds the value that all are compared with.
    """

    value: float
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True)
class Row:
    """A row of the chart: its label, a value of each series that has one, and these in words, at the right end."""

    label: str
    estimates: tuple[Estimate | None, ...]
    text: str = ""


def interval_chart(
    table: Table, rows: Sequence[Row], name: str, reference: tuple[str, float] | None, series: Sequence[str] = ()
) -> Markup:
    """Return a chart of values with their intervals. The axis need not start at 0: only places have a meaning.

    Args:
        table: values of the chart, whose title and words it takes over.
        rows: rows from above.
        name: name of the axis, with unit.
        reference: label and value of a line that all are compared with.
        series: labels of the series, where a row has a value of each.
    """
    ends = [end for row in rows for e in row.estimates if e for end in (e.value, e.low, e.high) if end is not None]
    if not ends:
        return empty(table.title)
    x = axis([*ends, *([reference[1]] if reference else [])], 20, _WIDE - 20, 6)
    drawing = Drawing(table.title, table.in_words(), _WIDE)
    top = 0.0
    for row in rows:
        bottom = top + _LABEL + _VALUE * sum(e is not None for e in row.estimates) + _GAP
        for tick in x.ticks:
            drawing.line(x.at(tick), top + _LABEL, x.at(tick), bottom - 2, "grid")
        if reference:
            drawing.line(x.at(reference[1]), top + _LABEL, x.at(reference[1]), bottom - 2, "reference")
        _draw(drawing, row, x, top)
        top = bottom
    below = x.draw_level(drawing, top + 4, name)
    return drawing.markup(drawing.legend(below, series, lines=False, reference=reference[0] if reference else None))


def _draw(drawing: Drawing, row: Row, x: Axis, top: float) -> None:
    """Draw a row: label and values in words, below them intervals and markers."""
    drawing.text(_WIDE, top + FONT + 3, row.text, "value", "end")
    drawing.text(0, top + FONT + 3, shorten(row.label, _WIDE - width(row.text) - 10), "label")
    # Numbered before those without a value are left out: a series keeps its colour and marker in all rows.
    known = [(number, estimate) for number, estimate in enumerate(row.estimates) if estimate]
    for place, (number, estimate) in enumerate(known):
        y = top + _LABEL + _VALUE * (place + 0.6)
        if estimate.low is not None and estimate.high is not None:
            css = f"interval c{number % COLOURS}"
            drawing.line(x.at(estimate.low), y, x.at(estimate.high), y, css)
            for end in (estimate.low, estimate.high):
                drawing.line(x.at(end), y - 4, x.at(end), y + 4, css)
        drawing.marker(number, x.at(estimate.value), y, "hollow" if estimate.hollow else "")
