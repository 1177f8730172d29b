"""Sentence encoders: texts in, unit vectors out. They know no dataset, episode or learner.

Importing this package makes compressed and stored encoders known to transformers, so that `SentenceTransformer(folder)`
loads one.
"""

from metasearch.encoders import _compressed as _compressed
from metasearch.encoders import _stored as _stored
