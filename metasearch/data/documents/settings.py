"""How documents become passages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from metasearch.config.languages import parse_tag
from metasearch.errors import ConfigError

OTHER_COLUMNS = ("title", "language")
"""Columns of a row that belong to its text; all others are further fields."""


@dataclass(frozen=True)
class Settings:
    """How documents become passages.

    Attributes:
        limit: the longest passage, in what `length` counts, a title before it included.
        length: counts a text, such as the tokens that an encoder takes it for; characters by default.
        overlap: how much of the end of a passage the next one may begin with; whole sentences where they fit.
        column: name of the column with the text in JSON lines and tables.
        titles: put a document's or a row's title before each of its passages.
        names: let the names of files and folders tell the language, such as `faq.de.md` and `de/faq.md`.
        language: of what neither a column, an attribute, front matter nor a name tells the language of.
        detect: tells the language of a text that still has none; see `metasearch.data.documents.detect`.
    """

    limit: int = 1000
    length: Callable[[str], int] = len
    overlap: int = 0
    column: str = "text"
    titles: bool = True
    names: bool = True
    language: str | None = None
    detect: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConfigError(f"passages: limit: expected a length of 1 or more, got {self.limit}")
        if not 0 <= self.overlap < self.limit:
            raise ConfigError(f"passages: overlap: expected 0 to {self.limit - 1}, below the limit, got {self.overlap}")
        if not self.column or self.column in OTHER_COLUMNS:
            raise ConfigError(f"passages: column: '{self.column}' cannot name the column with the text")
        if self.language is not None:
            try:
                object.__setattr__(self, "language", parse_tag(self.language))
            except ValueError as error:
                raise ConfigError(f"passages: language: {error}") from None

    @cached_property
    def estimate(self) -> Callable[[str], int]:
        """Counts a text word by word, which is faster, and may differ from `length`."""
        return estimator(self.length)


# Counts the tokens of a text word by word: most tokenizers part at white space, and words come back often.

_WORDS = 2**16
_LONGEST = 32
"""Characters of a word that is remembered."""


def estimator(length: Callable[[str], int]) -> Callable[[str], int]:
    """Return a function that sums the lengths of a text's words, with added special tokens counted once.

    Of a tokenizer whose tokens end at white space it is the length itself; of others it may be more or less.
    """
    added = length("")
    remembered = lru_cache(_WORDS)(length)

    def estimate(text: str) -> int:
        words = text.split()
        return added + sum((remembered(word) if len(word) <= _LONGEST else length(word)) - added for word in words)

    return estimate
