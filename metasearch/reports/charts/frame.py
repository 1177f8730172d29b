"""What charts with axes share: grid, ticks, the names of the axes, and a legend."""

from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.reports.charts.scale import Axis
from metasearch.reports.charts.svg import COLOURS, DASHES, FONT, Drawing, shorten, width

# Pixels from one line of text to the next.
ROW = 19
_SAMPLE = 30
_GAP = 20


@dataclass(frozen=True)
class Entry:
    """An entry of a legend.

    Attributes:
        number: of the series, for colour, dash and marker; None for the line that others are compared with.
        label: of the series.
    """

    number: int | None
    label: str


def series_class(number: int) -> str:
    """Return the classes of the line of a series."""
    return f"c{number % COLOURS} d{number % DASHES}"


def left_of(y: Axis) -> float:
    """Return how many pixels the labels of an upright axis take."""
    return max(width(y.label(tick)) for tick in y.ticks) + 10


def draw_upright(drawing: Drawing, y: Axis, left: float, right: float, name: str) -> None:
    """Draw an upright axis with lines across the plot; its name stands level above it, where it is easy to read."""
    for tick in y.ticks:
        drawing.line(left, y.at(tick), right, y.at(tick), "grid")
        drawing.text(left - 6, y.at(tick) + FONT / 3, y.label(tick), "tick", "end")
    drawing.text(0, y.end - ROW + 3, shorten(name, right), "axis-name")


def draw_level(drawing: Drawing, x: Axis, top: float, bottom: float, name: str) -> None:
    """Draw a level axis below the plot."""
    drawing.line(x.start, bottom, x.end, bottom, "axis")
    for tick in x.ticks:
        drawing.line(x.at(tick), bottom, x.at(tick), bottom + 4, "axis")
        drawing.text(x.at(tick), bottom + ROW, x.label(tick), "tick", "middle")
    drawing.text(x.end, bottom + 2 * ROW - 1, shorten(name, x.end), "axis-name", "end")


def rows_of(entries: Sequence[Entry], wide: float) -> list[list[Entry]]:
    """Return the entries of a legend in rows that fit."""
    rows: list[list[Entry]] = []
    used = wide
    for entry in entries:
        needed = _SAMPLE + min(width(entry.label), wide - _SAMPLE) + _GAP
        if not rows or used + needed - _GAP > wide:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += needed
    return rows


def draw_legend(
    drawing: Drawing, rows: Sequence[Sequence[Entry]], x: float, y: float, right: float, line: bool
) -> None:
    """Draw a legend: a piece of each line, or only its marker, and its label.

    Args:
        drawing: to draw in.
        rows: of entries.
        x: where it starts.
        y: of the base line of the first row.
        right: where it must end.
        line: whether series are lines, and not markers only.
    """
    for i, row in enumerate(rows):
        at, base = x, y + i * ROW
        for entry in row:
            if entry.number is None:
                drawing.line(at, base - 4, at + _SAMPLE - 6, base - 4, "reference")
            elif line:
                drawing.line(at, base - 4, at + _SAMPLE - 6, base - 4, f"mean {series_class(entry.number)}")
            if entry.number is not None:
                drawing.marker(entry.number, at + _SAMPLE / 2 - 3, base - 4)
            label = shorten(entry.label, right - at - _SAMPLE)
            drawing.text(at + _SAMPLE, base, label, "tick")
            at += _SAMPLE + width(label) + _GAP
