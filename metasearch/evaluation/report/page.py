"""A report as one HTML file that needs nothing else: no network, no font, no picture, no other file.

Everything that is text is escaped by jinja2. Scripts and styles are named by their hash in the page's policy, so a
browser runs those that were written here and no other one, and loads nothing at all.
"""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from metasearch.evaluation.report.section import SCORES, Section
from metasearch.evaluation.report.svg import clean, minus
from metasearch.evaluation.report.table import Table


@dataclass(frozen=True)
class Report:
    """A report with its sections in order; one of them has the scores.

    `intro` has the paragraphs below the title, with the results, and `facts` name and value of what the reader must
    know first, such as task, folds and version.
    """

    title: str
    intro: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str = ""

    @property
    def main(self) -> Table:
        """The main table with the scores."""
        return next(section for section in self.sections if section.key == SCORES).tables[0]


@cache
def environment() -> Environment:
    """Return the templates of this package; they escape all values, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("metasearch.evaluation.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    made.filters["minus"] = minus
    return made


def page(report: Report) -> str:
    """Return a report as HTML, from the doctype on.

    Raises:
        ValueError: two sections, charts or tables have the same key, or one has that of the page's main part.
    """
    keys = ["content"]
    for section in report.sections:
        keys += [section.key, *(chart.values.key for chart in section.charts)]
        keys += [table.key for table in section.tables_below]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"duplicate report section '{twice[0]}'")
    styles = [source("style.css"), source("charts.css"), *(s.style for s in report.sections if s.style)]
    scripts = [section.script for section in report.sections if section.script]
    template, policy = environment().get_template("report.html.j2"), _policy(styles, scripts)
    return template.render(report=report, styles=map(Markup, styles), scripts=map(Markup, scripts), policy=policy)


def source(name: str) -> str:
    """Return a template file unchanged."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _policy(styles: list[str], scripts: list[str]) -> str:
    """Return a content security policy: these styles and scripts, and nothing from anywhere."""
    names = [" ".join(_hash(text) for text in texts) or "'none'" for texts in (styles, scripts)]
    return f"default-src 'none'; style-src {names[0]}; script-src {names[1]}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _clean(value: Any) -> Any:
    """Return a value without characters forbidden in HTML; escaped text stays."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
