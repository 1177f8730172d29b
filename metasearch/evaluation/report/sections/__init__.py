"""Report sections, one per file: `ORDER`, its position, and `section`, which builds it.

The file is all there is to add: page, Markdown, `tables.json` and `tables/` take the section from here.
"""

from metasearch.config import registry
from metasearch.evaluation.report.section import Inputs, Section


def all_sections(inputs: Inputs) -> tuple[Section, ...]:
    """Return all report sections in order, without empty ones."""
    modules = sorted((registry.load("sections", name) for name in registry.names("sections")), key=lambda m: m.ORDER)
    return tuple(section for module in modules if (section := module.section(inputs)))
