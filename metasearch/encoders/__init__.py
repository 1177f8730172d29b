"""Sentence encoders: texts in, unit vectors out. They know no dataset, episode or learner.

Importing `metasearch.encoders.open` makes compressed and stored encoders known to transformers, so that
`SentenceTransformer(folder)` loads one.
"""
