"""Sentence encoders: texts in, unit vectors out. They know no dataset, episode or learner.

Importing this package makes compressed and stored encoders known to transformers, so that `SentenceTransformer(folder)`
loads one.
"""

from metasearch.encoders import compressed as compressed
from metasearch.encoders import int8 as int8
