"""Axes of charts: ticks at round values, the pixel of a value, and how they are drawn."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from metasearch.reports.charts.svg import FONT, ROW, Drawing, minus, shorten, width

# Below this share of its values a range is rounding error, and the axis is drawn as if all were one value.
_SAME = 1e-9


@dataclass(frozen=True)
class Axis:
    """An axis of a chart.

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
        """Return the pixel of a value."""
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
        """Draw the axis upright, with lines across the plot from `left` to `right`; its name stands level above it."""
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
    """Return factor and exponent of the nearest of 1, 2, 5 times a power of ten, by ratio."""
    exponent = math.floor(math.log10(size))
    steps = (1, exponent), (2, exponent), (5, exponent), (1, exponent + 1)
    return min(steps, key=lambda step: abs(math.log10(size / _times(*step))))


def _times(whole: int, exponent: int) -> float:
    """Return a whole number times a power of ten, as near as a float comes to it."""
    # By way of text, which is rounded once: 3 · 10**-1 is 0.30000000000000004, and would be a label.
    return float(f"{whole}e{exponent}")


def _power(value: float) -> int:
    # The logarithm of a step may be rounded to just below its whole number.
    return math.floor(math.log10(value) + 1e-6)
