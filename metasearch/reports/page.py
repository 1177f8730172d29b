"""A report as one HTML file that needs nothing else: no network, no font, no picture, no other file.

Everything that is text is escaped by jinja2. Scripts and styles are named by their hash in the page's policy, so a
browser runs those that were written here and no other one, and loads nothing at all.
"""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from metasearch.reports.charts.chart import Chart
from metasearch.reports.charts.svg import clean, minus
from metasearch.reports.formats import titled
from metasearch.reports.table import Table

NO_HTML = Markup("")


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes:
        key: for links; no other section has it.
        heading: in plain text.
        paragraphs: that stand first, in plain text.
        charts: that stand next.
        tables: that stand below them.
        html: of its own, last; whoever made it has escaped it. It holds no `<style>`, no script that runs, and no
            `style` attribute: the policy of the page forbids them.
        style: further rules for it.
        script: that works on it, run when the page is there. No text from data belongs into it.
    """

    key: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    html: Markup = NO_HTML
    style: str = ""
    script: str = ""


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        title: of the page.
        intro: paragraphs below the title: what was compared, and what came out.
        facts: name and value of what the reader must know first, such as task, folds and version.
        sections: in their order.
        footer: how it was made, in plain text.
    """

    title: str
    intro: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str = ""


@cache
def environment() -> Environment:
    """Return the templates of this package; they escape all values, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("metasearch.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    made.filters |= {"titled": titled, "words": _of_words, "minus": minus}
    return made


def page(report: Report) -> str:
    """Return a report as HTML, from the doctype on.

    Args:
        report: what it says.

    Raises:
        ValueError: two sections, charts or tables have the same key, or one has that of the page's main part.
    """
    keys = ["content"]
    for section in report.sections:
        keys += [section.key, *(chart.key for chart in section.charts), *(table.key for table in section.tables)]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"the report has more than one part with the key '{twice[0]}'")
    styles = [_file("style.css"), _file("charts.css"), *filter(None, (section.style for section in report.sections))]
    scripts = [section.script for section in report.sections if section.script]
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            styles=[Markup(text) for text in styles],
            scripts=[Markup(text) for text in scripts],
            policy=_policy(styles, scripts),
        )
    )


def html_table(table: Table) -> Markup:
    """Return a table as HTML, within a container in which it scrolls where it is too wide."""
    return Markup(environment().get_template("table.html.j2").module.table(table))  # type: ignore[attr-defined]


def _policy(styles: list[str], scripts: list[str]) -> str:
    """Return a content security policy: these styles and scripts, and nothing from anywhere."""
    names = [" ".join(_hash(text) for text in texts) or "'none'" for texts in (styles, scripts)]
    return f"default-src 'none'; style-src {names[0]}; script-src {names[1]}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _of_words(table: Table, column: int) -> bool:
    """Return whether a column holds text only, which starts where lines start; numbers end where lines end."""
    return all(line.cells[column].value is None for line in table.lines)


def _file(name: str) -> str:
    """Return a file of the templates as it is."""
    loader, env = environment().loader, environment()
    assert loader is not None
    return loader.get_source(env, name)[0]


def _clean(value: Any) -> Any:
    """Return a value without characters that HTML forbids; what is escaped already stays as it is."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
