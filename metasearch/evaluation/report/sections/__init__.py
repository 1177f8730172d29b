"""The sections of a report, one a file: `ORDER`, its place in the report, and `section`, which makes it.

The file is all there is to add: page, Markdown, `tables.json` and `tables/` take the section from here.
"""

from metasearch.config import registry
from metasearch.evaluation.report.section import Inputs, Section


def all_sections(inputs: Inputs) -> tuple[Section, ...]:
    """Return all sections of a report in their order; one that has nothing to show is left out."""
    modules = sorted((registry.load("sections", name) for name in registry.names("sections")), key=lambda m: m.ORDER)
    return tuple(section for module in modules if (section := module.section(inputs)))
