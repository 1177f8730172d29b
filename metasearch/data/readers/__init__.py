"""One reader per file format.

A reader is a module with two functions: `files(task)` names the files it will open, `read(folder, task)` returns
`RetrievalData`, `SimilarityData` or `TranslationData`. Damage is a `DataError` that names file, line or key path, and
what was expected.
"""
