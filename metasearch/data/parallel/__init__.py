"""Parallel corpora: sentences in a pivot language and their translations.

`files` finds files by their names and reads their lines, `saved` holds prepared corpora on disk, and
`corpus.read_corpus` gives the pairs of either.
"""
