"""A report as values: sections with charts, figures and tables, which `templates/` draws; and a section's inputs."""

from dataclasses import dataclass

from metasearch.evaluation.report.figure import Figure
from metasearch.evaluation.report.table import Table
from metasearch.evaluation.report.ticks import round_ticks, tick_label
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.study.compare import Comparison
from metasearch.evaluation.study.study import ScoreSelection, Study

SCORES = "scores"
"""Key of the section whose first table is the report's main one."""


_MARGIN = 3.0
"""Percent of the width left of the first tick, and right of the last."""


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
    """A row of a chart: its label, a finite value, an interval for each series or None, and a text on the right."""

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
        return tick_label(tick)


@dataclass(frozen=True)
class Section:
    """A report section: plain text, then charts, figures and tables; figures and tables are written as files, too.

    `key` is its name for links; no other section, chart, figure or table has it.
    """

    key: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


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
