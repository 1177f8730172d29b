"""Parallel corpora: sentences in a pivot language and their translations.

`files` finds files by their names and reads their lines, `saved` reads corpora that `datasets` saved, and
`corpus.read_corpus` gives the pairs of either.
"""
