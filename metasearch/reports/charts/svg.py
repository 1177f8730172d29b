"""A drawing made of elements, serialised at the end, so that no text can become markup.

Colours, dashes and fonts are classes of `templates/charts.css`, so a chart follows the reader's light or dark mode.
"""

import re
from collections.abc import Iterable
from unicodedata import combining, east_asian_width
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

# Pixels of the text in charts.
FONT = 13
# How many colours, dashes and markers there are; no two numbers share a factor, so a pair of them is rarely seen twice.
COLOURS, DASHES, MARKERS = 8, 5, 7
# Up to the first width a chart shrinks to any screen, up to the second as far as it stays readable, above it never.
_SHRINKS, _FITS = 500, 800
# A chart is drawn for a phone, and shown this much larger where there is room.
_LARGER = 1.15

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
    """Return about how many pixels wide a text is: nobody knows the reader's font."""
    wide = {"W": 1.0, "F": 1.0}
    return FONT * sum(0.0 if combining(c) else wide.get(east_asian_width(c), 0.58) for c in text)


def shorten(text: str, pixels: float) -> str:
    """Return a text on one line, cut where it would be wider than some pixels."""
    line = " ".join(text.split())
    if width(line) <= pixels:
        return line
    kept = line
    while kept and width(kept + "…") > pixels:
        kept = kept[:-1]
    return kept.rstrip() + "…"


class Drawing:
    """A picture being drawn, with its name and description for those who do not see it."""

    def __init__(self, wide: float, high: float, title: str, description: str) -> None:
        css = "chart" if wide <= _SHRINKS else "chart wide" if wide <= _FITS else "chart fixed"
        self.root = Element("svg", {"class": css, "viewBox": f"0 0 {_number(wide)} {_number(high)}"})
        self.root.attrib |= {"width": _number(_LARGER * wide), "height": _number(_LARGER * high), "role": "img"}
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

    def marker(self, number: int, x: float, y: float) -> None:
        """Draw the marker of a series."""
        css = f"marker c{number % COLOURS}"
        self._add(
            "path", {"d": _SHAPES[number % MARKERS], "transform": f"translate({_number(x)} {_number(y)})", "class": css}
        )

    def dot(self, x: float, y: float, css: str) -> None:
        """Draw a round point."""
        self._add("circle", {"cx": x, "cy": y, "r": 4.5, "class": css})

    def text(self, x: float, y: float, text: str, css: str = "", anchor: str = "start") -> None:
        """Write a text, on one line, from its start, middle or end on."""
        self._add("text", {"x": x, "y": y, "text-anchor": anchor, "class": css}, " ".join(text.split()))

    def markup(self) -> Markup:
        """Return the drawing as an element of HTML."""
        return Markup(tostring(self.root, encoding="unicode"))

    def _add(self, tag: str, attributes: dict[str, str | float], text: str | None = None) -> None:
        shown = {name: value if isinstance(value, str) else _number(value) for name, value in attributes.items()}
        SubElement(self.root, tag, {name: value for name, value in shown.items() if value}).text = text and clean(text)


def _number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{value:z.1f}".removesuffix(".0")
