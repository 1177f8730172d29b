"""A drawing built from elements and serialised at the end, so that no text can become markup.

Colours, dashes and fonts are classes of `templates/charts.css`, so a chart follows the reader's light or dark mode.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

FONT = 13
"""Pixels of the text in charts."""
ROW = 19
"""Pixels from one line of text to the next."""
COLOURS, DASHES, MARKERS = 8, 5, 7
"""How many there are; no two numbers share a factor, so a pair of them is rarely seen twice."""

# Up to the first width a chart shrinks to any screen, up to the second as far as it stays readable, above it never.
_SHRINKS, _FITS = 500, 800
# A chart is drawn for a phone, and shown this much larger where there is room.
_LARGER = 1.15
# Pixels of the sample of a legend's entry, and between entries.
_SAMPLE, _GAP = 30, 20

# What HTML and XML forbid: control characters, lone surrogates and noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",  # circle
    "M-3.5-3.5h7v7h-7z",  # square
    "M0-4.6L4.4 3.4h-8.8z",  # triangle
    "M0-5L5 0L0 5L-5 0z",  # diamond
    "M-4-4L4 4M-4 4L4-4",  # cross
    "M0 4.6L4.4-3.4h-8.8z",  # triangle on its point
    "M-5 0H5M0-5V5",  # plus
)


def clean(text: str) -> str:
    """Return a text with the replacement character for each character that HTML and XML forbid."""
    return _FORBIDDEN.sub("\ufffd", text)


def minus(number: str) -> str:
    """Return a number with a true minus sign, which is as wide as a digit."""
    return number.replace("-", "\N{MINUS SIGN}")


def width(text: str) -> float:
    """Return about how many pixels wide a text is; the reader's font is not known."""
    # Wide East Asian characters fill a square; 0.58 is about the mean of Latin letters.
    wide = {"W": 1.0, "F": 1.0}
    return FONT * sum(0.0 if combining(c) else wide.get(east_asian_width(c), 0.58) for c in text)


def shorten(text: str, pixels: float) -> str:
    """Return a text on one line, cut where it would be wider than some pixels."""
    line = " ".join(text.split())
    if width(line) <= pixels:
        return line
    while line and width(line + "…") > pixels:
        line = line[:-1]
    return line.rstrip() + "…"


def series_class(number: int) -> str:
    """Return the CSS classes for a series line: colour and dashes."""
    return f"c{number % COLOURS} d{number % DASHES}"


class Drawing:
    """A picture that grows downwards, with a name and a description for those who do not see it."""

    def __init__(self, title: str, description: str, wide: float) -> None:
        css = "chart" if wide <= _SHRINKS else "chart wide" if wide <= _FITS else "chart fixed"
        self.wide = wide
        self._root = Element("svg", {"class": css, "role": "img"})
        self._add("title", {}, title)
        self._add("desc", {}, description)

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        """Draw a straight line."""
        self._add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": css})

    def rect(self, x: float, y: float, wide: float, high: float, css: str) -> None:
        """Draw a rectangle."""
        self._add("rect", {"x": x, "y": y, "width": wide, "height": high, "class": css})

    def path(self, points: Iterable[tuple[float, float]], css: str) -> None:
        """Draw a line through points."""
        through = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self._add("path", {"d": f"M{through}", "class": css})

    def marker(self, number: int, x: float, y: float, css: str = "") -> None:
        """Draw a series marker, by number."""
        place = f"translate({_number(x)} {_number(y)})"
        css = f"marker c{number % COLOURS} {css}".rstrip()
        self._add("path", {"d": _SHAPES[number % MARKERS], "transform": place, "class": css})

    def text(self, x: float, y: float, text: str, css: str = "", anchor: str = "start") -> None:
        """Write a text, on one line, from its start, middle or end on."""
        self._add("text", {"x": x, "y": y, "text-anchor": anchor, "class": css}, " ".join(text.split()))

    def legend(self, y: float, labels: Sequence[str], lines: bool, reference: str | None = None) -> float:
        """Draw a legend from the pixel `y` down, a sample of each series and its label, and return the pixel below it.

        Series are markers, on `lines` where they are such; the line that all are compared with is drawn last.
        """
        entries = [*enumerate(labels), *([(None, reference)] if reference is not None else [])]
        x, base = 0.0, y + FONT + 1
        for number, label in entries:
            shown = shorten(label, self.wide - _SAMPLE)
            if x and x + _SAMPLE + width(shown) > self.wide:
                x, base = 0.0, base + ROW
            css = "reference" if number is None else f"mean {series_class(number)}"
            if lines or number is None:
                self.line(x, base - 4, x + _SAMPLE - 6, base - 4, css)
            if number is not None:
                self.marker(number, x + _SAMPLE / 2 - 3, base - 4)
            self.text(x + _SAMPLE, base, shown, "tick")
            x += _SAMPLE + width(shown) + _GAP
        return base + 7 if entries else y

    def markup(self, high: float) -> Markup:
        """Return the drawing as an HTML element with a height in pixels."""
        size = {"width": _number(_LARGER * self.wide), "height": _number(_LARGER * high)}
        self._root.attrib |= {"viewBox": f"0 0 {_number(self.wide)} {_number(high)}", **size}
        return Markup(tostring(self._root, encoding="unicode"))

    def _add(self, tag: str, attributes: dict[str, str | float], text: str | None = None) -> None:
        # An empty class is left out below; numbers are texts by then, so that a 0 stays.
        shown = {name: value if isinstance(value, str) else _number(value) for name, value in attributes.items()}
        SubElement(self._root, tag, {name: value for name, value in shown.items() if value}).text = text and clean(text)


def empty(title: str, wide: float = 480) -> Markup:
    """Return a drawing with a text instead of data."""
    text = "There are no values to draw."
    drawing = Drawing(title, text, wide)
    drawing.text(wide / 2, 1.7 * ROW, text, "tick", "middle")
    return drawing.markup(3 * ROW)


def _number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    # `z` writes -0.0 as 0.0. Finer than a tenth of a pixel nobody sees, and a page has thousands of numbers.
    return f"{value:z.1f}".removesuffix(".0")


# Axes of charts: ticks at round values, the pixel of a value, and how they are drawn.

# Below this share of its values a range is rounding error, and the axis is drawn as if all were one value.
_SAME = 1e-9


@dataclass(frozen=True)
class Axis:
    """A chart axis.

    Attributes:
        ticks: at least two, ascending and evenly spaced; the axis goes from the first to the last.
        step: distance of two ticks: 1, 2 or 5 times a power of ten.
        start: pixel of the first tick.
        end: pixel of the last tick.
    """

    ticks: tuple[float, ...]
    step: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return a value's pixel."""
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return self.start + share * (self.end - self.start)

    def label(self, tick: float) -> str:
        """Return a tick as text, with the decimals that its step needs and a true minus sign."""
        exponent = _power(self.step)
        largest = max(abs(self.ticks[0]), abs(self.ticks[-1]))
        # As a power of ten where all decimals would not fit beside the axis.
        if tick and (exponent < -4 or largest >= 1e7):
            digits, power = f"{tick:.{max(0, _power(largest) - exponent)}e}".split("e")
            return minus(f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}e{int(power)}")
        return minus(f"{tick:.{max(0, -exponent) if tick else 0}f}")

    def label_width(self) -> float:
        """Return how many pixels the labels beside an upright axis take."""
        return max(width(self.label(tick)) for tick in self.ticks) + 10

    def draw_upright(self, drawing: Drawing, left: float, right: float, name: str) -> None:
        """Draw a vertical axis, with grid lines from `left` to `right` and its name above."""
        for tick in self.ticks:
            drawing.line(left, self.at(tick), right, self.at(tick), "grid")
            drawing.text(left - 6, self.at(tick) + FONT / 3, self.label(tick), "tick", "end")
        drawing.text(0, self.end - ROW + 3, shorten(name, right), "axis-name")

    def draw_level(self, drawing: Drawing, bottom: float, name: str) -> float:
        """Draw the axis level below the plot, and return the pixel below it."""
        drawing.line(self.start, bottom, self.end, bottom, "axis")
        for tick in self.ticks:
            drawing.line(self.at(tick), bottom, self.at(tick), bottom + 4, "axis")
            drawing.text(self.at(tick), bottom + ROW, self.label(tick), "tick", "middle")
        drawing.text(self.end, bottom + 2 * ROW - 1, shorten(name, self.end), "axis-name", "end")
        return bottom + 2 * ROW + 8


def axis(values: Iterable[float], start: float, end: float, count: int = 5, whole: bool = False) -> Axis:
    """Return an axis that holds values, from the pixel `start` to the pixel `end`.

    It has about `count` spaces between ticks, between half and twice as many, and one more. `whole` says that only
    whole numbers have a meaning, as for steps.

    Raises:
        ValueError: there is no value, or one is not finite.
    """
    ordered = sorted(values)
    if not ordered or not all(map(math.isfinite, ordered)):
        raise ValueError("an axis needs values, all of them finite")
    low, high = ordered[0], ordered[-1]
    if high - low <= _SAME * max(abs(low), abs(high)):
        # One value: the axis needs some extent, yet none below 0 for values that are not negative.
        half = abs(low) / 10 or 1.0
        low, high = low - half, high + half
        if ordered[0] >= 0:
            low = max(low, 0.0)
    factor, exponent = _nice((high - low) / count)
    if whole and exponent < 0:
        factor, exponent = 1, 0
    step = _times(factor, exponent)
    # A value that is beyond a tick by rounding adds no empty space.
    first, last = math.floor(low / step + _SAME), math.ceil(high / step - _SAME)
    return Axis(tuple(_times(i * factor, exponent) for i in range(first, last + 1)), step, start, end)


def _nice(size: float) -> tuple[int, int]:
    """Return factor and exponent for the nearest of 1, 2, 5 times a power of ten, by ratio."""
    exponent = math.floor(math.log10(size))
    steps = (1, exponent), (2, exponent), (5, exponent), (1, exponent + 1)
    return min(steps, key=lambda step: abs(math.log10(size / _times(*step))))


def _times(whole: int, exponent: int) -> float:
    """Return a whole number times a power of ten, as the nearest float."""
    # By way of text, which is rounded once: 3 · 10**-1 is 0.30000000000000004, and would be a label.
    return float(f"{whole}e{exponent}")


def _power(value: float) -> int:
    # The logarithm of a step may be rounded to just below its whole number.
    return math.floor(math.log10(value) + 1e-6)
