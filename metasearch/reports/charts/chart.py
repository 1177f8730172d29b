"""A chart as it stands in a report: a picture, and the same values as a table."""

from dataclasses import dataclass

from markupsafe import Markup

from metasearch.reports.table import Table


@dataclass(frozen=True)
class Chart:
    """A chart of a report.

    Attributes:
        key: for links; no other chart or table of the report has it.
        title: what it shows, in one line.
        svg: the picture, one or more `<svg>` elements that stand beside each other.
        values: that it shows, for those who cannot see it or want to know exactly; its notes stand below the chart.
    """

    key: str
    title: str
    svg: Markup
    values: Table
