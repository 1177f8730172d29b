"""A text and its translation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Translation:
    """One line of a parallel corpus.

    Attributes:
        source: the text in the pivot language, which the teacher knows.
        target: its translation.
        languages: of source and target, such as `("en", "de")`.
    """

    source: str
    target: str
    languages: tuple[str, str]
