"""Means with their spread, side by side in groups: such as transfer modes, and in each the learners."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.reports.charts.chart import Chart
from metasearch.reports.charts.frame import ROW, Entry, draw_legend, draw_upright, left_of, rows_of
from metasearch.reports.charts.line import empty
from metasearch.reports.charts.scale import Axis, axis
from metasearch.reports.charts.svg import COLOURS, Drawing, shorten
from metasearch.reports.table import Cell, Line, Table

# Pixels of a group, of a chart at least, and of the plot.
_GROUP, _WIDE, _HIGH = 62.0, 380.0, 220.0


@dataclass(frozen=True)
class Dots:
    """Means of one series, such as a learner.

    Attributes:
        label: in the legend.
        values: one for each group; None where there is none.
        spreads: standard deviation of each; None where there is none.
    """

    label: str
    values: tuple[float | None, ...]
    spreads: tuple[float | None, ...] = ()

    def at(self, i: int) -> tuple[float, float] | None:
        """Return mean and spread in a group; None where it cannot be drawn."""
        value, spread = self.values[i], self.spreads[i] if self.spreads else None
        if value is None or not math.isfinite(value):
            return None
        return value, spread if spread is not None and math.isfinite(spread) else 0.0


@dataclass(frozen=True)
class Names:
    """What a dot chart is called.

    Attributes:
        key: of the chart.
        title: what it shows.
        groups: what a group is, such as `mode`.
        values: what the values are, with unit.
        notes: what the spreads are.
    """

    key: str
    title: str
    groups: str
    values: str
    notes: tuple[str, ...] = ()


def dot_chart(
    names: Names,
    groups: Sequence[str],
    series: Sequence[Dots],
    reference: tuple[str, float] | None = None,
    scale: float = 100.0,
    decimals: int = 2,
) -> Chart:
    """Return a chart of means and spreads. The axis need not start at 0: lengths mean nothing here, only places.

    Args:
        names: of the chart and its axes.
        groups: from left to right.
        series: in each group from left to right.
        reference: label and value of a line across, such as zero-shot; where nothing else is known, it is not drawn.
        scale: what values are shown times.
        decimals: behind the point.
    """
    table = _table(names, groups, series, reference, scale, decimals)
    found = [found for s in series for i in range(len(groups)) if (found := s.at(i))]
    if not found:
        return Chart(names.key, names.title, empty(names.title, "There are no values to draw."), table)
    ends = [scale * (mean + sign * spread) for mean, spread in found for sign in (-1, 1)]
    top = ROW + 8
    y = axis([*ends, scale * reference[1]] if reference else ends, top + _HIGH, top)
    left = left_of(y)
    wide = max(_WIDE, left + len(groups) * max(_GROUP, 20.0 * len(series)))
    labels = [_lines(group, (wide - left) / len(groups) - 4) for group in groups]
    below = top + _HIGH + 8 + ROW * max(map(len, labels))
    entries = [*(Entry(i, s.label) for i, s in enumerate(series)), *([Entry(None, reference[0])] if reference else [])]
    rows = rows_of(entries, wide)
    drawing = Drawing(wide, below + ROW * len(rows) + 10, names.title, _words(table))
    draw_upright(drawing, y, left, wide, names.values)
    if reference:
        drawing.line(left, y.at(scale * reference[1]), wide, y.at(scale * reference[1]), "reference")
    room = (wide - left) / len(groups)
    for i, lines in enumerate(labels):
        _group(drawing, lines, [s.at(i) for s in series], y, left + room * (i + 0.5), room, scale)
    draw_legend(drawing, rows, 0, below + ROW, wide, line=False)
    return Chart(names.key, names.title, drawing.markup(), table)


def _group(
    drawing: Drawing,
    label: Sequence[str],
    found: Sequence[tuple[float, float] | None],
    y: Axis,
    middle: float,
    room: float,
    scale: float,
) -> None:
    """Draw a group around its middle: label, spreads, markers."""
    for i, line in enumerate(label):
        drawing.text(middle, y.start + ROW * (i + 1), line, "tick", "middle")
    known = [(number, *values) for number, values in enumerate(found) if values]
    apart = min(16.0, room * 0.8 / max(1, len(known)))
    for place, (number, mean, spread) in enumerate(known):
        x = middle + apart * (place - (len(known) - 1) / 2)
        if spread:
            low, high = y.at(scale * (mean - spread)), y.at(scale * (mean + spread))
            drawing.line(x, low, x, high, f"interval c{number % COLOURS}")
        drawing.marker(number, x, y.at(scale * mean))


def _lines(label: str, room: float) -> list[str]:
    """Return a label in lines, broken behind hyphens and at spaces."""
    return [shorten(part, room) for part in re.findall(r"[^\s-]+-*|-+", label)[:4]] or [""]


def _table(
    names: Names,
    groups: Sequence[str],
    series: Sequence[Dots],
    reference: tuple[str, float] | None,
    scale: float,
    decimals: int,
) -> Table:
    """Return the values as a table, the reference below."""
    lines = [
        Line(
            (s.label,),
            tuple(Cell(text="–") if not (f := s.at(i)) else Cell(f[0], f[1] or None) for i in range(len(groups))),
        )
        for s in series
    ]
    if reference:
        lines.append(Line((reference[0],), tuple(Cell(reference[1]) for _ in groups), rule=True))
    return Table(names.key, names.title, (names.groups,), tuple(groups), tuple(lines), names.notes, scale, decimals)


def _words(table: Table) -> str:
    """Return a table in sentences."""
    return " ".join(
        f"{line.heads[0]}: "
        + ", ".join(f"{name} {table.shown(cell)}" for name, cell in zip(table.columns, line.cells, strict=True))
        + "."
        for line in table.lines
    )
