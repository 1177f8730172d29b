"""Report sections, one per file: `ORDER`, its position, and `section`, which builds it.

The file is all there is to add: page, Markdown, `tables.json` and `tables/` take the section from here.
"""
