"""Inputs and output types for report sections."""

from dataclasses import dataclass

from markupsafe import Markup

from metasearch.evaluation.report.table import Table
from metasearch.evaluation.study.compare import Comparison
from metasearch.evaluation.study.study import ScoreSelection, Study

NO_HTML = Markup("")
SCORES = "scores"
"""Key of the section whose first table is the main one of the report."""


@dataclass(frozen=True)
class Inputs:
    """A report's inputs: all scores, the main scores, and differences from the baseline.

    The arms of the study are in the order of the report; `with_questions` is the part of it whose runs have the results
    of each question. Where nothing can be compared `comparison` is None; `not_compared` says why, a sentence each.
    """

    study: Study
    with_questions: Study
    selection: ScoreSelection
    comparison: Comparison | None
    not_compared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A chart: one or more `<svg>` elements side by side, and the table behind them.

    The table is for those who cannot see the picture or want to know exactly; its key, title and notes are the chart's.
    """

    values: Table
    svg: Markup


@dataclass(frozen=True)
class Section:
    """A report section.

    Attributes:
        key: name for links; no other section has it.
        heading: heading in plain text.
        paragraphs: first part of the section, in plain text.
        charts: second part of the section.
        tables: tables that are written as files, too. On the page the table of a chart is folded below that chart, and
            the others follow all charts.
        html: further content, last, escaped already. The policy of the page forbids `<style>` and `style` in it, and
            scripts that run.
        style: further rules for it.
        script: script that works on it, run when the page is there. No text from data belongs into it.
    """

    key: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    html: Markup = NO_HTML
    style: str = ""
    script: str = ""

    @property
    def tables_below(self) -> list[Table]:
        """Tables that stand on the page by themselves."""
        drawn = {chart.values.key for chart in self.charts}
        return [table for table in self.tables if table.key not in drawn]
