"""Charts as SVG without a library: values with intervals, and lines over outer steps.

Colours, dashes and fonts are classes of `templates/charts.css`, so a chart follows the reader's light or dark mode.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from metasearch.evaluation.report.formats import clean, minus
from metasearch.evaluation.report.table import Table

FONT, ROW = 13, 19
"""Pixels of the text, and from one line of text to the next."""
COLOURS = 8
_DASHES = 5
_CHARACTER = 0.58 * FONT  # about the mean of Latin letters; the reader's font is not known
# A chart is drawn for a phone, and shown this much larger where there is room.
_LARGER = 1.15
_SAMPLE, _GAP = 30, 20  # pixels of the sample of a legend's entry, and between entries
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",  # circle
    "M-3.5-3.5h7v7h-7z",  # square
    "M0-4.6L4.4 3.4h-8.8z",  # triangle
    "M0-5L5 0L0 5L-5 0z",  # diamond
    "M-4-4L4 4M-4 4L4-4",  # cross
)
_SAME = 1e-9
"""Share of its values below which a range is rounding error."""

Points = tuple[tuple[float, float], ...]


def width(text: str) -> float:
    """Return about how many pixels wide a text is."""
    return _CHARACTER * len(text)


def shorten(text: str, pixels: float) -> str:
    """Return a text on one line, cut where it would be wider than some pixels."""
    line, most = " ".join(text.split()), max(1, int(pixels / _CHARACTER))
    return line if len(line) <= most else f"{line[: most - 1]}…"


class Drawing:
    """A picture that grows downwards, with a name and a description for those who do not see it.

    It is serialised at the end, so that no text can become markup.
    """

    def __init__(self, title: str, description: str, wide: float) -> None:
        self.wide = wide
        self._root = Element("svg", {"class": "chart", "role": "img"})
        self._add("title", {}, title)
        self._add("desc", {}, description)

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        """Draw a straight line."""
        self._add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": css})

    def path(self, points: Iterable[tuple[float, float]], number: int) -> None:
        """Draw the line of a series through points."""
        through = "L".join(f"{_coordinate(x)} {_coordinate(y)}" for x, y in points)
        self._add("path", {"d": f"M{through}", "class": _series(number)})

    def marker(self, number: int, x: float, y: float, css: str = "") -> None:
        """Draw the marker of a series."""
        place = f"translate({_coordinate(x)} {_coordinate(y)})"
        css = f"marker c{number % COLOURS} {css}".rstrip()
        self._add("path", {"d": _SHAPES[number % len(_SHAPES)], "transform": place, "class": css})

    def text(self, x: float, y: float, text: str, css: str = "", anchor: str = "start") -> None:
        """Write a text on one line, from its start, middle or end on."""
        self._add("text", {"x": x, "y": y, "text-anchor": anchor, "class": css}, " ".join(text.split()))

    def legend(self, y: float, labels: Sequence[str], lines: bool, reference: str | None = None) -> float:
        """Draw a sample of each series and its label, the reference last, and return the pixel below the legend."""
        entries = [*enumerate(labels), *([(None, reference)] if reference is not None else [])]
        x, base = 0.0, y + FONT + 1
        for number, label in entries:
            shown = shorten(label, self.wide - _SAMPLE)
            if x and x + _SAMPLE + width(shown) > self.wide:
                x, base = 0.0, base + ROW
            if lines or number is None:
                self.line(x, base - 4, x + _SAMPLE - 6, base - 4, "reference" if number is None else _series(number))
            if number is not None:
                self.marker(number, x + _SAMPLE / 2 - 3, base - 4)
            self.text(x + _SAMPLE, base, shown, "tick")
            x += _SAMPLE + width(shown) + _GAP
        return base + 7 if entries else y

    def markup(self, high: float) -> Markup:
        """Return the drawing as an HTML element with a height in pixels."""
        size = {"width": _coordinate(_LARGER * self.wide), "height": _coordinate(_LARGER * high)}
        self._root.attrib |= {"viewBox": f"0 0 {_coordinate(self.wide)} {_coordinate(high)}", **size}
        return Markup(tostring(self._root, encoding="unicode"))

    def _add(self, tag: str, attributes: dict[str, str | float], text: str | None = None) -> None:
        shown = {name: value if isinstance(value, str) else _coordinate(value) for name, value in attributes.items()}
        SubElement(self._root, tag, {name: value for name, value in shown.items() if value}).text = text and clean(text)


def _series(number: int) -> str:
    return f"mean c{number % COLOURS} d{number % _DASHES}"


def _coordinate(value: float) -> str:
    # `z` writes -0.0 as 0.0. Nobody sees a tenth of a pixel.
    return f"{value:z.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Axis:
    """A chart axis with at least two ticks, from the pixel `start` at the first to `end` at the last."""

    ticks: tuple[float, ...]
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return a value's pixel."""
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return self.start + share * (self.end - self.start)

    def label(self, tick: float) -> str:
        """Return a tick as text."""
        return minus(f"{tick:.12g}")

    def draw_level(self, drawing: Drawing, bottom: float, name: str) -> float:
        """Draw the axis level below the plot, and return the pixel below it."""
        drawing.line(self.start, bottom, self.end, bottom, "axis")
        for tick in self.ticks:
            drawing.line(self.at(tick), bottom, self.at(tick), bottom + 4, "axis")
            drawing.text(self.at(tick), bottom + ROW, self.label(tick), "tick", "middle")
        drawing.text(self.end, bottom + 2 * ROW - 1, shorten(name, self.end), "axis-name", "end")
        return bottom + 2 * ROW + 8


def axis(values: Sequence[float], start: float, end: float, count: int = 5, least: float = 0.0) -> Axis:
    """Return an axis that holds finite values, with about `count` ticks at 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    if high - low <= _SAME * max(abs(low), abs(high)):
        half = abs(low) / 10 or 1.0
        low, high = low - half, high + half
    size = (high - low) / count
    power = 10.0 ** math.floor(math.log10(size))
    step = max(least, min((power * n for n in (1, 2, 5, 10)), key=lambda step: abs(math.log10(size / step))))
    # A value that is beyond a tick by rounding adds no empty space.
    first, last = math.floor(low / step + _SAME), math.ceil(high / step - _SAME)
    return Axis(tuple(i * step for i in range(first, last + 1)), start, end)


# Pixels of a chart, of a row's label, of each value below it, and of the gap to the next row.
_WIDE, _LABEL, _VALUE, _ROW_GAP = 460.0, 22.0, 16.0, 8.0


@dataclass(frozen=True)
class Estimate:
    """A finite value in axis units, with its interval if known; `hollow` where the interval holds the reference."""

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
    """Return a chart of values with their intervals, in rows, at least one value in all."""
    ends = [end for row in rows for e in row.estimates if e for end in (e.value, e.low, e.high) if end is not None]
    x = axis([*ends, *([reference[1]] if reference else [])], 20, _WIDE - 20, 6)
    drawing = Drawing(table.title, table.in_words(), _WIDE)
    top = 0.0
    for row in rows:
        bottom = top + _LABEL + _VALUE * sum(e is not None for e in row.estimates) + _ROW_GAP
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
    # Numbered before missing values are dropped: a series keeps its colour and marker in all rows.
    known = [(number, estimate) for number, estimate in enumerate(row.estimates) if estimate]
    for place, (number, estimate) in enumerate(known):
        y = top + _LABEL + _VALUE * (place + 0.6)
        if estimate.low is not None and estimate.high is not None:
            css = f"interval c{number % COLOURS}"
            drawing.line(x.at(estimate.low), y, x.at(estimate.high), y, css)
            for end in (estimate.low, estimate.high):
                drawing.line(x.at(end), y - 4, x.at(end), y + 4, css)
        drawing.marker(number, x.at(estimate.value), y, "hollow" if estimate.hollow else "")


_HIGH, _MARKED = 210.0, 30
"""Pixels of a plot's height; up to this many points of a line have markers."""


def line_chart(table: Table, series: Sequence[tuple[str, Points]], name: str) -> Markup:
    """Return a chart of lines over outer steps, from the label and the points of each, at least one point in all."""
    points = [point for _, line in series for point in line]
    top = ROW + 8.0
    y = axis([value for _, value in points], top + _HIGH, top)
    left = max(width(y.label(tick)) for tick in y.ticks) + 10
    x = axis([step for step, _ in points], left + 2, _WIDE - 22, least=1.0)
    drawing = Drawing(table.title, table.in_words(), _WIDE)
    for tick in y.ticks:
        drawing.line(left, y.at(tick), _WIDE - 10, y.at(tick), "grid")
        drawing.text(left - 6, y.at(tick) + FONT / 3, y.label(tick), "tick", "end")
    drawing.text(0, top - ROW + 3, shorten(name, _WIDE), "axis-name")
    bottom = x.draw_level(drawing, top + _HIGH, "outer step")
    for number, (_, line) in enumerate(series):
        if len(line) > 1:
            drawing.path(((x.at(step), y.at(value)) for step, value in line), number)
        for step, value in line if len(line) <= _MARKED else ():
            drawing.marker(number, x.at(step), y.at(value))
    # A single line has no legend: its `series[1:]` is empty.
    return drawing.markup(drawing.legend(bottom, [label for label, _ in series[1:] and series], lines=True))
