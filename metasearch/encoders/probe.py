"""Two texts of different lengths as tokens, to test how a network computes embeddings."""

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


def probe_rows(read: TextReader, longest: int) -> tuple[Columns, Rows]:
    """Return tokens `(columns, T)` for a short text and one with `longest` tokens; `EncoderError` without words."""
    # transformers makes up a tokenizer of special tokens alone for a folder that has none.
    if not read.has_words:
        raise EncoderError("its tokenizer has no words; tokenizer files may be missing")
    short, long = _TEXTS
    found = read.tokenise([short, long * (1 + longest // 16)], min(longest, read.longest))
    return tuple(found), [np.array([values[i] for values in found.values()], np.int32) for i in range(2)]
