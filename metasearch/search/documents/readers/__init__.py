"""Document readers, one per kind.

A reader is a module with one function: `sections(path, settings, notes)` yields the document's running text in
`Section`s, and notes what it skips. What stops the whole document is a `DataError` that names file and line. A bad
row or a language that is no tag is noted, and the rest is read.
"""
