"""A text and its translation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from metasearch.spec.recipe import Role


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

    roles: ClassVar[Mapping[str, Role]] = {"source": "text", "target": "text"}
    score: ClassVar[None] = None

    @property
    def texts(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target

    def lines(self) -> tuple[str, ...]:
        """Return both texts in one line."""
        return (f"{self.source}  |  {self.target}",)
