"""Sentence encoders: texts in, unit vectors out. They know no dataset, episode or learner.

Importing this package makes compressed and stored encoders known to transformers, so that `SentenceTransformer(folder)`
loads one.
"""

from metasearch import collector
from metasearch.encoders import compressed as compressed
from metasearch.encoders import int8 as int8

# What takes long to import is there now.
collector.run_as_usual()
