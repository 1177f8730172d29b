"""Parallel corpora: sentences in a pivot language and their translations, from TSV and Moses files.

`read.read_corpus` finds and reads the files, and counts what it leaves out; `corpus.Corpus` holds the pairs.
"""
