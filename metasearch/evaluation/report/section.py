"""A report and its sections as values, and the inputs of a section."""

from dataclasses import dataclass

from metasearch.evaluation.report.charts import Chart
from metasearch.evaluation.report.table import Table
from metasearch.evaluation.study.compare import Comparison
from metasearch.evaluation.study.study import ScoreSelection, Study

SCORES = "scores"
"""Key of the section whose first table is the main one of the report."""


@dataclass(frozen=True)
class Inputs:
    """A report's inputs: all scores, the main scores, and differences from the baseline.

    The arms of the study are in the order of the report. `comparison` is None where nothing can be compared;
    `not_compared` says why.
    """

    study: Study
    selection: ScoreSelection
    comparison: Comparison | None
    not_compared: str = ""


@dataclass(frozen=True)
class Section:
    """A report section: plain text, then charts, then tables, which are written as files, too.

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
