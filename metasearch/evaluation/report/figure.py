"""A figure for a paper, as values and as an SVG of its own: bars in groups.

`templates/figure.svg.j2` draws it. Text stays text, and its width is estimated: SVG cannot measure it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from metasearch.evaluation.report.formats import minus
from metasearch.evaluation.report.ticks import round_ticks, tick_label

COLOURS = ("#7f7f7f", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255")
"""Colours of the series, which color-blind readers tell apart: grey, six of Okabe and Ito (2008), and wine of Tol."""

_LETTER, _SMALL = 7.2, 6.6
"""Estimated width of a letter in fonts of 13 and 12 pixels."""
_LEFT, _RIGHT, _PLOT, _LINE = 64.0, 16.0, 260.0, 20.0
_LEAST, _THINNEST, _WIDEST = 420.0, 7.0, 26.0


@dataclass(frozen=True)
class Value:
    """A value of a figure and the ends of its interval, unscaled; without an interval both ends are the value."""

    value: float
    low: float
    high: float
    text: str

    @classmethod
    def of(cls, value: float, spread: float | None) -> "Value":
        """Return a value with its standard deviation, or without."""
        reach = spread or 0.0
        shown = f"{100 * value:z.2f}" + ("" if spread is None else f" ± {100 * spread:.2f}")
        return cls(value, value - reach, value + reach, minus(shown))


@dataclass(frozen=True)
class Series:
    """A series of a figure: its name in the legend, and its value in each group, or None."""

    name: str
    values: tuple[Value | None, ...]


@dataclass(frozen=True)
class Mark:
    """A drawn value, in pixels: centre, place of the value and of the ends, colour, and what it says."""

    x: float
    y: float
    low: float
    high: float
    colour: str
    text: str


@dataclass(frozen=True)
class Figure:
    """A figure of values × 100; at most as many series as there are `COLOURS`.

    Attributes:
        key: name for files and links, such as `by-language`.
        axes: names of the x axis and of the y axis, with their units.
        groups: names along the x axis.
        notes: what the values and lines are, one sentence each.
    """

    key: str
    title: str
    axes: tuple[str, str]
    groups: tuple[str, ...]
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def ticks(self) -> tuple[float, ...]:
        """Places of the y axis, unscaled; 0 is one of them."""
        known = [value for each in self.series for value in each.values if value]
        return round_ticks([0.0, *(end for value in known for end in (value.low, value.high))])

    @property
    def bar(self) -> float:
        """Width of a bar."""
        room = (self._words - _LEFT - _RIGHT) / (len(self.groups) * (len(self.series) + 1))
        return min(_WIDEST, max(_THINNEST, room))

    @property
    def slot(self) -> float:
        """Least width of a group."""
        return max(self.bar * (len(self.series) + 1), _LETTER * max(map(len, self.groups)) + 8)

    @property
    def width(self) -> float:
        """Width of the whole figure."""
        return max(self._words, _LEFT + self.slot * len(self.groups) + _RIGHT)

    @property
    def _words(self) -> float:
        """Width that the title needs, and the notes up to some width at which they are broken."""
        longest = max([0, *map(len, self.notes)])
        return max(
            _LEAST, 1.2 * _LETTER * len(self.title) + 2 * _RIGHT, min(_SMALL * longest + 2 * _RIGHT, 1.4 * _LEAST)
        )

    @cached_property
    def legend(self) -> tuple[tuple[float, float, str, str], ...]:
        """Place, colour and name of each series, in as many rows as they need."""
        x, row, found = _LEFT, 0, []
        for colour, each in zip(COLOURS, self.series, strict=False):
            width = _LETTER * len(each.name) + 36
            if x + width > self.width and x > _LEFT:
                x, row = _LEFT, row + 1
            found.append((x, 46 + _LINE * row, colour, each.name))
            x += width
        return tuple(found)

    @property
    def top(self) -> float:
        """Upper end of the plot, below title and legend."""
        return self.legend[-1][1] + 24

    @property
    def bottom(self) -> float:
        """Lower end of the plot."""
        return self.top + _PLOT

    @property
    def lines(self) -> tuple[str, ...]:
        """The notes, broken into lines of the figure's width."""
        return tuple(line for note in self.notes for line in _wrapped(note, int((self.width - 2 * _RIGHT) / _SMALL)))

    @property
    def height(self) -> float:
        """Height of the whole figure."""
        return self.bottom + 48 + _LINE * len(self.lines)

    def x(self, group: int) -> float:
        """Return the centre of a group."""
        room = self.width - _LEFT - _RIGHT
        return _LEFT + room * (group + 0.5) / len(self.groups)

    def y(self, value: float) -> float:
        """Return the place of a value."""
        first, *_, last = self.ticks
        return self.bottom - _PLOT * (value - first) / (last - first)

    def label(self, tick: float) -> str:
        """Return a tick × 100 as text."""
        return tick_label(tick)

    def marks(self, number: int) -> list[Mark]:
        """Return the drawn values of a series."""
        shift = self.bar * (number - (len(self.series) - 1) / 2)
        own = self.series[number]
        return [
            Mark(
                self.x(i) + shift, self.y(each.value), self.y(each.low), self.y(each.high), COLOURS[number],
                f"{own.name}, {self.groups[i]}: {each.text}",
            )
            for i, each in enumerate(own.values) if each
        ]  # fmt: skip

    @property
    def description(self) -> str:
        """All values in words, for readers who do not see the figure."""
        return "; ".join(mark.text for number in range(len(self.series)) for mark in self.marks(number))


def split(figure: Figure) -> Iterator[Figure]:
    """Yield a figure in parts, none with more series than there are colours; the first series is in each part."""
    first, rest = figure.series[:1], figure.series[1:]
    count = max(1, math.ceil(len(rest) / (len(COLOURS) - 1)))
    size = math.ceil(len(rest) / count)
    for number in range(count):
        own = (*first, *rest[number * size : (number + 1) * size])
        name, part = (f"-{number + 1}", f", part {number + 1} of {count}") if count > 1 else ("", "")
        yield Figure(f"{figure.key}{name}", f"{figure.title}{part}", figure.axes, figure.groups, own, figure.notes)


def _wrapped(text: str, width: int) -> Sequence[str]:
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
