"""Keys of passages: two with the same key have the same vector, so that one of them is encoded."""

import hashlib
from collections.abc import Sequence

import numpy as np

from metasearch.data.documents.passage import Passage
from metasearch.retrieval.index.segment import KEY_BYTES, Keys


def keys_of(passages: Sequence[Passage], depends: str = "") -> Keys:
    """Return the key of each passage: of its text and language, not of its place, `(n, 16)`.

    Args:
        passages: n of them.
        depends: what else their vectors depend on, beside the encoder.
    """
    parts = ((depends, passage.language, passage.text) for passage in passages)
    # Lengths tell apart what would be the same one after another.
    texts = ("".join(f"{len(part)}:{part}" for part in each) for each in parts)
    found = b"".join(hashlib.sha256(text.encode()).digest()[:KEY_BYTES] for text in texts)
    return np.frombuffer(found, np.uint8).reshape(-1, KEY_BYTES)
