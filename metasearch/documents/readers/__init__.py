"""One reader a kind of document.

A reader is a module with one function: `sections(path, settings, notes)` yields the document's running text in
`Section`s, and counts in `notes` what it leaves out. Damage is a `DataError` that names file and line.
"""
