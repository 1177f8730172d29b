"""A report as values: sections with charts and tables, which `templates/` draws; and a section's inputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.evaluation.report.formats import minus
from metasearch.evaluation.report.table import Table
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.study.compare import Comparison
from metasearch.evaluation.study.study import ScoreSelection, Study

SCORES = "scores"
"""Key of the section whose first table is the report's main one."""
_MARGIN = 3.0
"""Percent of the width left of the first tick, and right of the last."""
_SAME = 1e-9
"""Share of its values below which a range is rounding error."""


@dataclass(frozen=True)
class Inputs:
    """A report's inputs: all scores, the main scores, and differences from the baseline.

    The study's arms are in report order. `comparison` is None where nothing can be compared;
    `not_compared` says why.
    """

    study: Study
    selection: ScoreSelection
    comparison: Comparison | None
    not_compared: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a chart: its label, a finite value, its interval in each series or None, and a text on the right."""

    label: str
    value: float
    intervals: tuple[Interval | None, ...]
    text: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart of values × 100 with their intervals, in one or more rows.

    Attributes:
        key: name for links, such as `differences`.
        series: names in the legend, one for each place in `Row.intervals`; empty without a legend.
        reference: name of the line at 0, at which a marker is hollow if its interval includes 0; empty without one.
    """

    key: str
    title: str
    rows: tuple[Row, ...]
    series: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reference: str = ""

    @property
    def ticks(self) -> tuple[float, ...]:
        """Places of the axis, unscaled; all values are between the first and the last."""
        known = [each for row in self.rows for each in row.intervals if each]
        ends = [end for each in known for end in (each.low, each.high) if end is not None]
        values = [row.value for row in self.rows]
        return round_ticks([*values, *ends, 0.0] if self.reference else [*values, *ends])

    def place(self, value: float) -> str:
        """Return how far to the right a value stands, as a CSS percentage."""
        first, *_, last = self.ticks
        return f"{_MARGIN + (100 - 2 * _MARGIN) * (value - first) / (last - first):.2f}%"

    def label(self, tick: float) -> str:
        """Return a tick × 100 as text."""
        return minus(f"{100 * tick:z.10g}")


def round_ticks(values: Sequence[float], count: int = 6) -> tuple[float, ...]:
    """Return two or more, about `count`, evenly spaced ticks around finite values: 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    if high - low <= _SAME * max(abs(low), abs(high)):
        half = abs(low) / 10 or 1.0
        low, high = low - half, high + half
    size = (high - low) / count
    power = 10.0 ** math.floor(math.log10(size))
    step = min((power * n for n in (1, 2, 5, 10)), key=lambda step: abs(math.log10(size / step)))
    # A value that is beyond a tick by rounding adds no empty space.
    first, last = math.floor(low / step + _SAME), math.ceil(high / step - _SAME)
    return tuple(i * step for i in range(first, last + 1))


@dataclass(frozen=True)
class Section:
    """A report section: plain text, then charts and tables; tables are written as files, too.

    `key` is its name for links; no other section, chart or table has it.
    """

    key: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report: results in words, facts that a reader must know first, and sections; one of them has the scores."""

    title: str
    intro: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str = ""

    @property
    def main(self) -> Table:
        """The main table with the scores."""
        return next(section for section in self.sections if section.key == SCORES).tables[0]
