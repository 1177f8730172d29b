"""Document formats, a plug-in each.

A format is a module that assigns two literals in a line each, which are read without importing it: `SUFFIXES`, the ends
of names such as `(".txt",)`, which `.gz` may follow, and `HOLDS`, one of `metasearch.data.formats.documents.Holds`, or
one for each suffix. Its function `sections(path, settings, notes)` yields the document's running text in `Section`s,
and notes what it skips. What stops the whole document is a `DataError` that names file and line. A bad row or a
language that is no tag is noted, and the rest is read.
"""
