"""Lines over outer steps, each with the thin lines that it sums up."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from metasearch.reports.charts.axis import Axis, axis
from metasearch.reports.charts.svg import ROW, Drawing, empty, series_class

Points = tuple[tuple[float, float], ...]
# Up to this many points each has a marker; more would hide the line.
_MARKED = 30


@dataclass(frozen=True)
class Series:
    """A line of a chart: label in the legend, and step and finite value of each point, by step.

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
    _draw(drawing, drawn, x, y)
    # A single line has no legend: its `drawn[1:]` is empty.
    return drawing.markup(drawing.legend(bottom, [s.label for s in drawn[1:] and drawn], lines=True))


def _draw(drawing: Drawing, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """Draw the thin lines of all series, and above them the others."""
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
