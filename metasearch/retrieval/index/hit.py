"""A hit: what a search found, and how near it is."""

from dataclasses import dataclass

from metasearch.data.documents.passage import Passage


@dataclass(frozen=True)
class Hit:
    """A passage that was found.

    Attributes:
        score: similarity to the query; the higher, the nearer.
        passage: at the first place that has it.
        places: how many places of the documents have this text in this language, this one included.
    """

    score: float
    passage: Passage
    places: int = 1
