"""Report sections, one per file: `ORDER`, its position, and `section`, which builds it.

The file is all there is to add: page, Markdown, `tables.json`, `tables/` and `figures/` take the section from here.
"""
