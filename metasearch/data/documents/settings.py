"""How documents become passages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

OTHER_COLUMNS = ("title", "language")
"""Columns of a row that belong to its text; all others are further fields."""


@dataclass(frozen=True)
class Settings:
    """How documents become passages.

    Attributes:
        limit: length of the longest passage, with its title.
        length: returns the length of a text, such as its tokens.
        detect: returns the language of a text without one.

    The others are as in `metasearch.config.index.IndexSettings`.
    """

    limit: int = 1000
    length: Callable[[str], int] = len
    overlap: int = 0
    column: str = "text"
    titles: bool = True
    names: bool = True
    language: str | None = None
    detect: Callable[[str], str] | None = None

    @cached_property
    def estimate(self) -> Callable[[str], int]:
        """Counts a text word by word, which is faster, and may differ from `length`."""
        return estimator(self.length)


# Counts the tokens of a text word by word: most tokenizers part at white space, and words come back often.

_WORDS = 2**16
_LONGEST = 32
"""Characters of a word that is remembered."""


def estimator(length: Callable[[str], int]) -> Callable[[str], int]:
    """Return a function that sums the lengths of a text's words, with added special tokens counted once."""
    added = length("")
    remembered = lru_cache(_WORDS)(length)

    def estimate(text: str) -> int:
        words = text.split()
        return added + sum((remembered(word) if len(word) <= _LONGEST else length(word)) - added for word in words)

    return estimate
