"""What the encoder's thread does: vectors of texts, and hits of queries."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.recipe import Role
from metasearch.retrieval.index.hit import Hit
from metasearch.retrieval.search.searcher import Searcher


@dataclass(frozen=True)
class Embedding:
    """Vectors are asked for.

    Attributes:
        role: of the texts.
    """

    role: Role


@dataclass(frozen=True)
class Search:
    """Passages are asked for; attributes are the arguments of `Searcher.search`."""

    top: int
    languages: frozenset[str]
    hybrid: bool
    expand: bool
    balance: bool


@dataclass(frozen=True)
class Result:
    """What came of one text.

    Attributes:
        tokens: that the encoder read.
        cut: whether it left the text's end unread.
        vector: `(D,)`, of an embedding.
        hits: of a search.
    """

    tokens: int
    cut: bool
    vector: NDArray[np.float32] | None = None
    hits: Sequence[Hit] = ()


def worker(searcher: Searcher) -> Callable[[Hashable, list[str]], list[Result]]:
    """Return the function that does what is asked for, one result a text."""
    encoder = searcher.encoder

    def do(work: Any, texts: list[str]) -> list[Result]:
        role: Role = work.role if isinstance(work, Embedding) else "question"
        try:
            truncated = encoder.is_truncated(texts, role).tolist()
            counts = zip(encoder.lengths(texts, role).tolist(), truncated, strict=True)
            if isinstance(work, Embedding):
                vectors = encoder.encode(texts, role)
                return [Result(*count, vector=vector) for count, vector in zip(counts, vectors, strict=True)]
            found = searcher.search(texts, **asdict(work))
            return [Result(*count, hits=hits) for count, hits in zip(counts, found, strict=True)]
        finally:
            encoder.forget()

    return do
