"""Points in a plane, coloured by group, in pictures of one scale beside each other; also as a file of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup, escape

from metasearch.reports.charts.svg import ROW, Drawing, empty, shorten

_SIDE, _GAP = 300.0, 24.0
"""Pixels of a picture, and between two."""
_AFTER_COLOURS = "* { box-sizing"
"""What follows the names of colours in the styles of a page."""


@dataclass(frozen=True)
class Picture:
    """A picture of points: its title, and group → points, finite and around 0."""

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
    drawing = Drawing(title, words, len(pictures) * (_SIDE + _GAP) - _GAP)
    top = ROW + 4.0
    for i, picture in enumerate(pictures):
        left = i * (_SIDE + _GAP)
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
        (files("metasearch.reports") / "templates" / name).read_text(encoding="utf-8")
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
