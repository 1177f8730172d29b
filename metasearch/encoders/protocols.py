"""Protocols for text embeddings: an encoder, or stored embeddings."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.config.roles import Role
from metasearch.data.formats.given import list_texts


class TextEncoder(Protocol):
    """Embed texts: the interface needed for an evaluation."""

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""

    def encode(self, texts: Sequence[str], role: Role, /) -> NDArray[np.float32]:
        """Return unit vectors `(len(texts), D)`, in order."""


class TextReranker(Protocol):
    """Scores texts for a query, reading both together."""

    @property
    def name(self) -> str:
        """Name in results and messages."""

    def scores(self, query: str, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return the score of each text, `(len(texts),)`; equal texts have equal scores."""


class ProgressEncoder(TextEncoder, Protocol):
    """Encodes texts and calls `on_progress` after each batch with the number of finished texts and their total."""

    on_progress: Callable[[int, int], None] | None


@contextmanager
def report_progress(encoder: ProgressEncoder, hear: Callable[[int, int], None]) -> Iterator[None]:
    """Report every batch encoded in the context: finished texts and their total."""
    encoder.on_progress = hear
    try:
        yield
    finally:
        encoder.on_progress = None


class CachedEncoder:
    """Embed each text once per role and cache the result; the encoder's weights must not change.

    The last bits of a vector depend on which texts are encoded together. So each `part` of the data has vectors of its
    own, which do not depend on whether another part was encoded before, as in a resumed run.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._vectors: dict[tuple[Role, str], NDArray[np.float32]] = {}
        self._parts: dict[str, CachedEncoder] = {}

    def part(self, name: str) -> "CachedEncoder":
        """Return embeddings for the texts of one part, such as `dev`."""
        return self._parts.setdefault(name, CachedEncoder(self._encoder))

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""
        return self._encoder.device

    def add(self, texts: Sequence[str], role: Role, vectors: NDArray[np.float32]) -> None:
        """Add known vectors `(len(texts), D)` of distinct texts."""
        self._vectors.update(zip(((role, text) for text in texts), vectors, strict=True))

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return unit vectors `(len(texts), D)`, in order."""
        texts = list_texts(texts)
        new = list(dict.fromkeys(text for text in texts if (role, text) not in self._vectors))
        vectors = self._encoder.encode(new, role)
        self.add(new, role, vectors)
        return np.stack([self._vectors[role, text] for text in texts]) if texts else vectors
