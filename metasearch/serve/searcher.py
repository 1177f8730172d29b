"""What is served: an encoder and an index together, as the server sees them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from metasearch.encoders.encoder import Encoder


class Passage(Protocol):
    """A piece of a document."""

    @property
    def text(self) -> str:
        """What is shown."""

    @property
    def file(self) -> str:
        """Path of the document, as it is shown."""

    @property
    def line(self) -> int:
        """Where it begins there, counted from 1."""

    @property
    def language(self) -> str:
        """Tag such as `de`; `und` where it is not known."""


class Hit(Protocol):
    """A passage that was found."""

    @property
    def score(self) -> float:
        """How well it fits; the best is first."""

    @property
    def passage(self) -> Passage:
        """What was found."""


class Searcher(Protocol):
    """An index and the encoder that its vectors are of. All calls come from one thread."""

    @property
    def encoder(self) -> Encoder:
        """The encoder."""

    @property
    def languages(self) -> Mapping[str, int]:
        """Passages by language."""

    def search(
        self, queries: Sequence[str], *, top: int = 10, languages: Collection[str] = (), hybrid: bool = False
    ) -> Sequence[Sequence[Hit]]:
        """Return the best passages of each query, the best first; of some languages, or of all."""
