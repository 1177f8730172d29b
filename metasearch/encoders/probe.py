"""Texts of different lengths as tokens, to test how a network computes embeddings."""

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.features import TextReader
from metasearch.errors import EncoderError

_TEXTS = (
    "a",
    "The key lies under the mat. Wo liegt der Schlüssel? ¿Dónde está la llave? 鑰匙在墊子下面 أين المفتاح؟ 0 1 2 3 ",
)

Columns = tuple[str, ...]
Rows = list[NDArray[np.int32]]


def probe_rows(read: TextReader, *lengths: int) -> tuple[Columns, Rows]:
    """Return tokens `(columns, T)` for a short text and one of each length; `EncoderError` without words."""
    # transformers makes up a tokenizer of special tokens alone for a folder that has none.
    if not read.has_words:
        raise EncoderError("its tokenizer has no words; tokenizer files may be missing")
    short, long = _TEXTS
    columns: Columns = ()
    rows: Rows = []
    for text, length in [(short, min(lengths)), *((long * (1 + length // 16), length) for length in lengths)]:
        found = read.tokenise([text], min(length, read.longest))
        columns = tuple(found)
        rows.append(np.array([values[0] for values in found.values()], np.int32))
    return columns, rows
