"""A matrix of values as coloured fields, with each value written in its field."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from metasearch.reports.charts.chart import Chart
from metasearch.reports.charts.frame import ROW
from metasearch.reports.charts.line import empty
from metasearch.reports.charts.svg import FONT, Drawing, minus, shorten, width
from metasearch.reports.table import Cell, Line, Table

# Colours of a palette; `templates/charts.css` has a colour and a readable text colour for each of them.
SHADES = 9
_HIGH = 34.0


@dataclass(frozen=True)
class Matrix:
    """What a heat map shows.

    Attributes:
        key: of the chart.
        title: what it shows.
        row: what a row is, such as `questions`.
        column: what a column is, such as `candidates`.
        rows: names of the rows.
        columns: names of the columns.
        values: one tuple for each row; None or NaN where there is none.
        notes: what the values are.
        diverging: whether 0 is the middle, and values are written with their sign; otherwise they go from the lowest to
            the highest.
        scale: what values are shown times.
        decimals: behind the point.
        also: values that the palette holds beside its own, so that maps beside each other have the same colours.
    """

    key: str
    title: str
    row: str
    column: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...] = ()
    diverging: bool = False
    scale: float = 100.0
    decimals: int = 1
    also: tuple[float, ...] = ()

    def said(self, value: float) -> str:
        """Return a value as it is written."""
        sign = "+" if self.diverging else ""
        return minus(f"{self.scale * value:{sign}z.{self.decimals}f}")


def heatmap(matrix: Matrix) -> Chart:
    """Return a heat map."""
    known = {
        (i, j): value
        for (i, row), j in product(enumerate(matrix.values), range(len(matrix.columns)))
        if (value := row[j]) is not None and math.isfinite(value)
    }
    if not known:
        return Chart(matrix.key, matrix.title, empty(matrix.title, "There are no values to draw."), _table(matrix))
    low, high = _ends(matrix, [*known.values(), *filter(math.isfinite, matrix.also)])
    left = min(180.0, max(*map(width, matrix.rows), 1.15 * width(matrix.row))) + 12
    wide = max(
        54.0,
        *(width(matrix.said(value)) + 12 for value in known.values()),
        *(min(120, width(c) + 8) for c in matrix.columns),
    )
    top, across = 2.0 * ROW + 6, left + wide * len(matrix.columns)
    bottom = top + _HIGH * len(matrix.rows)
    total = max(across, left + 260)
    drawing = Drawing(total, bottom + 2 * ROW + 8, matrix.title, _words(matrix, known))
    drawing.text(left, ROW - 5, shorten(matrix.column, total - left), "axis-name")
    drawing.text(left - 10, 2 * ROW - 1, shorten(matrix.row, left), "axis-name", "end")
    for j, name in enumerate(matrix.columns):
        drawing.text(left + wide * (j + 0.5), 2 * ROW - 1, shorten(name, wide), "label", "middle")
    for i, name in enumerate(matrix.rows):
        drawing.text(left - 10, top + _HIGH * (i + 0.5) + FONT / 3, shorten(name, left), "label", "end")
        for j in range(len(matrix.columns)):
            value = known.get((i, j))
            shade = None if value is None else _shade(matrix, value, low, high)
            said = "–" if value is None else matrix.said(value)
            _field(drawing, left + wide * j, top + _HIGH * i, wide, shade, said)
    _ramp(drawing, matrix, low, high, left, bottom + 12)
    return Chart(matrix.key, matrix.title, drawing.markup(), _table(matrix))


def _field(drawing: Drawing, x: float, y: float, wide: float, shade: str | None, said: str) -> None:
    """Draw a field and the value in it."""
    drawing.rect(x + 1, y + 1, wide - 2, _HIGH - 2, f"field {shade}" if shade else "field none")
    drawing.text(x + wide / 2, y + _HIGH / 2 + FONT / 3, said, f"on {shade}" if shade else "tick", "middle")


def _ramp(drawing: Drawing, matrix: Matrix, low: float, high: float, x: float, y: float) -> None:
    """Draw the palette from the lowest to the highest value."""
    start = x + width(matrix.said(low)) + 8
    drawing.text(start - 8, y + FONT, matrix.said(low), "tick", "end")
    for i in range(SHADES):
        drawing.rect(start + 14.0 * i, y + 1, 14, 14, f"field {'v' if matrix.diverging else 'q'}{i}")
    drawing.text(start + 14 * SHADES + 8, y + FONT, matrix.said(high), "tick")


def _ends(matrix: Matrix, values: Sequence[float]) -> tuple[float, float]:
    """Return the values of the palette's ends."""
    if not matrix.diverging:
        return min(values), max(values)
    furthest = max(map(abs, values))
    return -furthest, furthest


def _shade(matrix: Matrix, value: float, low: float, high: float) -> str:
    """Return the class of a value's colour; where all values are one, it is the middle one."""
    share = (value - low) / (high - low) if high > low else 0.5
    return f"{'v' if matrix.diverging else 'q'}{min(SHADES - 1, int(SHADES * share))}"


def _table(matrix: Matrix) -> Table:
    """Return the values as a table."""
    lines = tuple(
        Line((name,), tuple(Cell(v) if v is not None and math.isfinite(v) else Cell(text="–") for v in values))
        for name, values in zip(matrix.rows, matrix.values, strict=True)
    )
    heads = (f"{matrix.row} / {matrix.column}",)
    return Table(matrix.key, matrix.title, heads, matrix.columns, lines, matrix.notes, matrix.scale, matrix.decimals)


def _words(matrix: Matrix, known: dict[tuple[int, int], float]) -> str:
    """Return what the map shows in words: its extremes, and, where rows and columns are the same, its diagonal."""
    said = []
    for what, at in (("Highest", max(known, key=known.__getitem__)), ("Lowest", min(known, key=known.__getitem__))):
        row, column = matrix.rows[at[0]], matrix.columns[at[1]]
        said.append(f"{what}: {matrix.said(known[at])}, {matrix.row} {row}, {matrix.column} {column}.")
    same = [value for (i, j), value in known.items() if matrix.rows[i] == matrix.columns[j]]
    other = [value for (i, j), value in known.items() if matrix.rows[i] != matrix.columns[j]]
    if same and other:
        means = (matrix.said(sum(found) / len(found)) for found in (same, other))
        said.append("Mean where both are the same: {}, where they are not: {}.".format(*means))
    return " ".join(said)
