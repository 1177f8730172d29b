"""Lines over steps, each with the thin lines that it sums up."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from metasearch.reports.charts.frame import (
    ROW,
    Entry,
    draw_legend,
    draw_level,
    draw_upright,
    left_of,
    rows_of,
    series_class,
)
from metasearch.reports.charts.scale import Axis, axis
from metasearch.reports.charts.svg import Drawing

Points = tuple[tuple[float, float], ...]
# Up to this many points each has a marker; more would hide the line.
_MARKED = 30


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        label: in the legend.
        points: x and y, by x; those that are not finite are left out.
        thin: lines drawn thin in the same colour, such as the runs that `points` is the mean of.
        number: for colour, dash and marker.
    """

    label: str
    points: Points
    thin: tuple[Points, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class Look:
    """How a line chart is drawn.

    Attributes:
        x: name of the level axis, whose values are whole numbers.
        y: name of the upright axis.
        wide: pixels of the whole chart.
        high: pixels of the plot, without axis labels and legend.
        says: a value of the upright axis in words.
        range: values that the upright axis holds beside those of the series, for charts beside each other.
    """

    x: str
    y: str
    wide: float = 480
    high: float = 210
    says: Callable[[float], str] = "{:.4g}".format
    range: tuple[float, ...] = ()


def finite(points: Iterable[tuple[float, float]]) -> Points:
    """Return the points that can be drawn."""
    return tuple(point for point in points if all(map(math.isfinite, point)))


def empty(title: str, why: str, wide: float = 480) -> Markup:
    """Return a drawing that says in words why there is none."""
    drawing = Drawing(wide, 3 * ROW, title, why)
    drawing.text(wide / 2, 1.7 * ROW, why, "tick", "middle")
    return drawing.markup()


def line_chart(title: str, series: Sequence[Series], look: Look) -> Markup:
    """Return a line chart.

    Args:
        title: what it shows.
        series: lines; those without a finite point are left out.
        look: names of the axes, sizes.
    """
    drawn = [Series(s.label, finite(s.points), tuple(map(finite, s.thin)), s.number) for s in series]
    drawn = [s for s in drawn if s.points or any(s.thin)]
    points = [point for s in drawn for line in (s.points, *s.thin) for point in line]
    if not points:
        return empty(title, "There are no values to draw.", look.wide)
    top = ROW + 8
    y = axis((*(value for _, value in points), *look.range), top + look.high, top)
    left = left_of(y)
    x = axis((step for step, _ in points), left + 2, look.wide - 22, max(2, round(look.wide / 95)), whole=True)
    rows = rows_of([Entry(s.number, s.label) for s in drawn], look.wide) if len(drawn) > 1 else []
    below = top + look.high + 2 * ROW + 8
    drawing = Drawing(look.wide, below + len(rows) * ROW + 2, title, " ".join(_words(s, look) for s in drawn))
    draw_upright(drawing, y, left, look.wide - 10, look.y)
    draw_level(drawing, x, top, top + look.high, look.x)
    _draw(drawing, drawn, x, y)
    draw_legend(drawing, rows, 0, below + ROW - 5, look.wide, line=True)
    return drawing.markup()


def _draw(drawing: Drawing, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """Draw the thin lines of all series, and above them the others."""
    for s in series:
        for line in s.thin:
            if len(line) > 1:
                drawing.path(((x.at(a), y.at(b)) for a, b in line), f"thin {series_class(s.number)}")
    for s in series:
        if len(s.points) > 1:
            drawing.path(((x.at(a), y.at(b)) for a, b in s.points), f"mean {series_class(s.number)}")
        if len(s.points) <= _MARKED:
            for a, b in s.points:
                drawing.marker(s.number, x.at(a), y.at(b))


def _words(series: Series, look: Look) -> str:
    """Return a series in a sentence: first, last and highest value."""
    if not series.points:
        return f"{series.label}: runs only, no mean."
    (a, first), (b, last) = series.points[0], series.points[-1]
    if len(series.points) == 1:
        return f"{series.label}: {look.says(first)} at {a:.0f}."
    at, highest = max(series.points, key=lambda point: point[1])
    return (
        f"{series.label}: from {look.says(first)} at {a:.0f} to {look.says(last)} at {b:.0f}, "
        f"highest {look.says(highest)} at {at:.0f}."
    )
