"""A table of values as coloured fields, with each value written in its field."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from metasearch.reports.charts.svg import FONT, ROW, Drawing, empty, minus, shorten, width
from metasearch.reports.table import Table

# Colours of a palette; `templates/charts.css` has a colour and a readable text colour for each of them.
SHADES = 9
_HIGH = 34.0


class Palette:
    """The colours of values: from the lowest to the highest, or diverging, with 0 in the middle."""

    def __init__(self, values: Sequence[float], diverging: bool) -> None:
        furthest = max(map(abs, values))
        self.low, self.high = (-furthest, furthest) if diverging else (min(values), max(values))
        self._name, self._sign = ("v", "+") if diverging else ("q", "")

    def css(self, shade: int) -> str:
        """Return the class of a colour, by its number."""
        return f"{self._name}{shade}"

    def of(self, value: float) -> str:
        """Return the class of a value's colour; where all values are one, it is the middle one."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        # The highest value has share 1, one class beyond the last.
        return self.css(min(SHADES - 1, int(SHADES * share)))

    def text(self, value: float) -> str:
        """Return a value as it is written."""
        # `z`: what rounds to 0 has no minus sign.
        return minus(f"{value:{self._sign}z.1f}")


def heatmap(table: Table, row: str, column: str, diverging: bool = False, also: Sequence[float | None] = ()) -> Markup:
    """Return a heat map of a table; `row` and `column` say what they are, such as `questions` and `candidates`.

    Where it is diverging, 0 is the middle colour, and values are written with their sign. The palette holds the values
    of `also`, too, so that maps beside each other share colours.
    """
    cells = {(i, j): cell.value for i, line in enumerate(table.lines) for j, cell in enumerate(line.cells)}
    known = {at: table.scale * value for at, value in cells.items() if value is not None and math.isfinite(value)}
    if not known:
        return empty(table.title)
    palette = Palette([*known.values(), *(table.scale * v for v in also if v is not None)], diverging)
    names = [line.heads[0] for line in table.lines]
    left = min(180.0, max(*map(width, names), 1.15 * width(row))) + 12
    columns = (min(120, width(name) + 8) for name in table.columns)
    wide = max(54.0, *(width(palette.text(value)) + 12 for value in known.values()), *columns)
    top = 2.0 * ROW + 6
    drawing = Drawing(
        table.title, _words(table, known, palette, row, column), max(left + wide * len(table.columns), left + 260)
    )
    drawing.text(left, ROW - 5, shorten(column, drawing.wide - left), "axis-name")
    drawing.text(left - 10, 2 * ROW - 1, shorten(row, left), "axis-name", "end")
    for j, name in enumerate(table.columns):
        drawing.text(left + wide * (j + 0.5), 2 * ROW - 1, shorten(name, wide), "label", "middle")
    for i, name in enumerate(names):
        drawing.text(left - 10, top + _HIGH * (i + 0.5) + FONT / 3, shorten(name, left), "label", "end")
    for i, j in cells:
        x, y, value = left + wide * j, top + _HIGH * i, known.get((i, j))
        field, on, text = "none", "tick", "–"
        if value is not None:
            field, on, text = palette.of(value), f"on {palette.of(value)}", palette.text(value)
        drawing.rect(x + 1, y + 1, wide - 2, _HIGH - 2, f"field {field}")
        drawing.text(x + wide / 2, y + _HIGH / 2 + FONT / 3, text, on, "middle")
    bottom = top + _HIGH * len(names) + 12
    _draw_palette(drawing, palette, left, bottom)
    return drawing.markup(bottom + 2 * ROW - 4)


def _draw_palette(drawing: Drawing, palette: Palette, x: float, y: float) -> None:
    """Draw the palette from the lowest to the highest value."""
    start = x + width(palette.text(palette.low)) + 8
    drawing.text(start - 8, y + FONT, palette.text(palette.low), "tick", "end")
    for shade in range(SHADES):
        drawing.rect(start + 14.0 * shade, y + 1, 14, 14, f"field {palette.css(shade)}")
    drawing.text(start + 14 * SHADES + 8, y + FONT, palette.text(palette.high), "tick")


def _words(table: Table, known: Mapping[tuple[int, int], float], palette: Palette, row: str, column: str) -> str:
    """Return what the map shows in words: its extremes, and, where rows and columns are the same, its diagonal."""
    sentences = []
    for what, (i, j) in (("Highest", max(known, key=known.__getitem__)), ("Lowest", min(known, key=known.__getitem__))):
        at = f"{row} {table.lines[i].heads[0]}, {column} {table.columns[j]}"
        sentences.append(f"{what}: {palette.text(known[i, j])}, {at}.")
    same, other = (
        [value for (i, j), value in known.items() if (table.lines[i].heads[0] == table.columns[j]) is equal]
        for equal in (True, False)
    )
    if same and other:
        means = (palette.text(sum(values) / len(values)) for values in (same, other))
        sentences.append("Mean where both are the same: {}, where they are not: {}.".format(*means))
    return " ".join(sentences)
