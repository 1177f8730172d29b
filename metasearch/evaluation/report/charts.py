"""Report charts: heat maps, intervals, lines and points, as SVG without a library."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup, escape

from metasearch.evaluation.report.svg import (
    COLOURS,
    FONT,
    ROW,
    Axis,
    Drawing,
    axis,
    empty,
    minus,
    series_class,
    shorten,
    width,
)
from metasearch.evaluation.report.table import Table

# A table of values as coloured fields, with each value written in its field.

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
        """Return the CSS class of a colour, by number."""
        return f"{self._name}{shade}"

    def of(self, value: float) -> str:
        """Return the class of a value's colour; where all values are one, it is the middle one."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        # The highest value has share 1, one class beyond the last.
        return self.css(min(SHADES - 1, int(SHADES * share)))

    def text(self, value: float) -> str:
        """Return a formatted value."""
        # `z`: what rounds to 0 has no minus sign.
        return minus(f"{value:{self._sign}z.1f}")


def heatmap(table: Table, row: str, column: str, diverging: bool = False, also: Sequence[float | None] = ()) -> Markup:
    """Return a table's heat map; `row` and `column` name its axes, such as `questions` and `candidates`.

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


# Values with their intervals on a level axis, in rows: differences of learners, or in each row a value of each.

# Pixels of the chart, of a row's label, of each value below it, and of the gap to the next row.
_WIDE, _LABEL, _VALUE, _GAP = 460.0, 22.0, 16.0, 8.0


@dataclass(frozen=True)
class Estimate:
    """A finite value in axis units, with its interval if known.

    Its marker is hollow, such as where the interval holds the value that all are compared with.
    """

    value: float
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True)
class Row:
    """A chart row: label, one value per series, and a text at the right end."""

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
        _draw_row(drawing, row, x, top)
        top = bottom
    below = x.draw_level(drawing, top + 4, name)
    return drawing.markup(drawing.legend(below, series, lines=False, reference=reference[0] if reference else None))


def _draw_row(drawing: Drawing, row: Row, x: Axis, top: float) -> None:
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


# Lines over outer steps, each with the thin lines that it sums up.

Points = tuple[tuple[float, float], ...]
# Up to this many points each has a marker; more would hide the line.
_MARKED = 30


@dataclass(frozen=True)
class Series:
    """A chart line: legend label, and (step, finite value) points in order.

    `thin` are lines drawn thin in the same colour, such as the runs that `points` is the mean of.
    """

    label: str
    points: Points
    thin: tuple[Points, ...] = ()


def line_chart(
    title: str,
    words: str,
    series: Sequence[Series],
    name: str,
    size: tuple[float, float] = (480, 210),
    also: Sequence[float] = (),
) -> Markup:
    """Return a line chart.

    Args:
        title: what it shows, in one line.
        words: its values in words.
        series: lines; those without points are left out.
        name: name of the upright axis, with unit.
        size: pixels of the chart's width and of the plot's height.
        also: values that the upright axis holds beside those of the series, for charts beside each other.
    """
    drawn = [s for s in series if s.points or any(s.thin)]
    points = [point for s in drawn for line in (s.points, *s.thin) for point in line]
    wide, high = size
    if not points:
        return empty(title, wide)
    top = ROW + 8.0
    y = axis((*(value for _, value in points), *also), top + high, top)
    left = y.label_width()
    x = axis((step for step, _ in points), left + 2, wide - 22, max(2, round(wide / 95)), whole=True)
    drawing = Drawing(title, words, wide)
    y.draw_upright(drawing, left, wide - 10, name)
    bottom = x.draw_level(drawing, top + high, "outer step")
    _draw_lines(drawing, drawn, x, y)
    # A single line has no legend: its `drawn[1:]` is empty.
    return drawing.markup(drawing.legend(bottom, [s.label for s in drawn[1:] and drawn], lines=True))


def _draw_lines(drawing: Drawing, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """Draw the thin lines of all series, then the others above them."""
    for number, s in enumerate(series):
        for line in s.thin:
            if len(line) > 1:
                drawing.path(((x.at(a), y.at(b)) for a, b in line), f"thin {series_class(number)}")
    for number, s in enumerate(series):
        if len(s.points) > 1:
            drawing.path(((x.at(a), y.at(b)) for a, b in s.points), f"mean {series_class(number)}")
        if len(s.points) <= _MARKED:
            for a, b in s.points:
                drawing.marker(number, x.at(a), y.at(b))


# Points in a plane, coloured by group, in pictures of one scale beside each other; also as a file of its own.

_SIDE, _SPACE = 300.0, 24.0
"""Pixels of a picture, and between two."""
_AFTER_COLOURS = "* { box-sizing"
"""What follows the names of colours in the styles of a page."""


@dataclass(frozen=True)
class Picture:
    """A scatter plot: title, and finite points per group around 0."""

    title: str
    groups: Mapping[str, Sequence[tuple[float, float]]]


def point_chart(title: str, words: str, pictures: Sequence[Picture]) -> Markup:
    """Return pictures beside each other, with one legend; a unit is as long in all of them and in both directions.

    Args:
        title: what they show, in one line.
        words: the same in words.
        pictures: with the same groups.
    """
    groups = list(dict.fromkeys(group for picture in pictures for group in picture.groups))
    values = [abs(x) for picture in pictures for points in picture.groups.values() for point in points for x in point]
    if not values:
        return empty(title)
    reach = max(values) or 1.0
    drawing = Drawing(title, words, len(pictures) * (_SIDE + _SPACE) - _SPACE)
    top = ROW + 4.0
    for i, picture in enumerate(pictures):
        left = i * (_SIDE + _SPACE)
        drawing.text(left, ROW - 5, shorten(picture.title, _SIDE), "axis-name")
        drawing.rect(left, top, _SIDE, _SIDE, "field none")
        # Points of all groups in turn, so that the last group does not cover the others.
        for number, (x, y) in _in_turn([picture.groups.get(group, ()) for group in groups]):
            half = _SIDE / 2
            drawing.marker(number, left + half + x / reach * (half - 8), top + half - y / reach * (half - 8), "point")
    return drawing.markup(drawing.legend(top + _SIDE + 8, groups, lines=False))


def standalone(chart: Markup) -> str:
    """Return a chart as an SVG file, with its styles in it."""
    page, charts = (
        (files("metasearch.evaluation.report") / "templates" / name).read_text(encoding="utf-8")
        for name in ("style.css", "charts.css")
    )
    # Of the page, the names of its colours alone: its root is the drawing here.
    styles = f"{page.partition(_AFTER_COLOURS)[0]}svg {{ background: var(--paper); }}\n{charts}"
    head, end, rest = str(chart).partition(">")
    file = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{file}{end}<style>{escape(styles)}</style>{rest}\n"


def _in_turn(groups: Sequence[Sequence[tuple[float, float]]]) -> Iterable[tuple[int, tuple[float, float]]]:
    longest = max(map(len, groups))
    return ((number, points[i]) for i in range(longest) for number, points in enumerate(groups) if i < len(points))
