"""Cuts text into passages: whole sentences, as many as fit, with semantic-text-splitter.

Boundaries follow Unicode (UAX 29) and, in Thai, Khmer, Lao and Burmese, a dictionary.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from metasearch.data.documents.passage import Notes, Section
from metasearch.data.formats.blank import blank
from metasearch.errors import ConfigError

LONG_TITLE = "titles longer than half a passage, put before the first passage alone"

_BLOCK = 8192
"""Characters that are cut at a time: the splitter's time grows with their square."""
# A space ends a phrase in Thai, Lao, Burmese and Khmer, and a semicolon asks in Greek: UAX 29 has neither as an end.
_PHRASE = re.compile(
    r"(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]) (?=\S)|(?<=[\u0370-\u03ff\u1f00-\u1fff][;\u037e]) "
)
_WORDS = 2**16
_LONGEST = 32
"""Characters of a word that is remembered."""
_BLANKS = re.compile(r"(?:\s*\n)?")


OTHER_COLUMNS = ("title", "language")
"""Columns of a row that belong to its text; all others are further fields."""


@dataclass(frozen=True)
class Settings:
    """How documents become passages; see also `metasearch.config.index.IndexSettings`."""

    limit: int = 1000
    """Length of the longest passage, with its title."""
    length: Callable[[str], int] = len
    overlap: int = 0
    column: str = "text"
    titles: bool = True
    names: bool = True
    language: str | None = None
    detect: Callable[[str], str] | None = None
    detectable: frozenset[str] = frozenset()
    """Languages that `detect` chooses from; a text labelled with another language keeps its label."""
    keep_repeated: bool = False
    """Whether menus, footers and other text that most pages share is kept."""
    detect_always: bool = False
    """Whether the detected language overrides labels and names."""

    @cached_property
    def estimate(self) -> Callable[[str], int]:
        """Counts a text word by word, which is faster, and may differ from `length`."""
        return estimator(self.length)


def estimator(length: Callable[[str], int]) -> Callable[[str], int]:
    """Return a function that sums the lengths of a text's words, with added special tokens counted once."""
    added = length("")
    remembered = lru_cache(_WORDS)(length)

    def estimate(text: str) -> int:
        words = text.split()
        return added + sum((remembered(word) if len(word) <= _LONGEST else length(word)) - added for word in words)

    return estimate


class Chunker:
    """Cuts sections into passages."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.size = max(_BLOCK, 8 * settings.limit)

    def cut(self, section: Section, notes: Notes) -> Iterator[tuple[int, str]]:
        """Yield the passages in a section in order, each with its offset."""
        title = f"{section.title}\n" if section.title and self.settings.titles else ""
        text, shift = section.text, 0
        if title and not self.is_passage(section.title):
            notes.counts[LONG_TITLE] += 1
            text, shift, title = title + text, len(title), ""
        split = self._splitter(section.markdown, title)
        measured = partial(_measured, self.settings.length, title)
        start = 0
        while start < len(text):
            end = end_of_block(text, start, self.size)
            for at, piece in split.chunk_indices(_PHRASE.sub("\r", text[start:end])):
                for inner, part in self._fitting(piece.replace("\r", " "), measured):
                    # In Markdown the splitter leaves blank lines before and after a passage.
                    blanks = _BLANKS.match(part).end()  # type: ignore[union-attr]
                    shown = part[blanks:].rstrip()
                    # A fence or a rule of Markdown alone shows nothing.
                    if any(map(str.isalnum, shown)) if section.markdown else not blank(shown):
                        yield max(0, start + at + inner + blanks - shift), title + shown
            start = end

    def is_passage(self, title: str) -> bool:
        """Return whether a title is a passage of its own: it is there, and short enough to stand before others."""
        return bool(title) and self.settings.titles and 2 * self.settings.length(f"{title}\n") <= self.settings.limit

    def _splitter(self, markdown: bool, title: str) -> Any:
        kind = MarkdownSplitter if markdown else TextSplitter
        limit, overlap = self.settings.limit, self.settings.overlap
        if self.settings.length is len:
            # The splitter counts characters ten times as fast itself.
            room = limit - len(title)
            return kind(room, min(overlap, room - 1))
        # The splitter measures what overlaps in the same way, with the title and what every passage begins with.
        measured = partial(_measured, self.settings.estimate, title)
        return kind.from_callback(measured, limit, min(overlap + measured(""), limit - 1) if overlap else 0)

    def _fitting(self, piece: str, measured: Callable[[str], int]) -> Iterator[tuple[int, str]]:
        """Yield a piece, or its halves if it is too long: the splitter sees only an estimate."""
        if measured(piece) <= self.settings.limit:
            yield 0, piece
            return
        if len(piece) == 1:
            raise ConfigError(
                f"passages: limit: {self.settings.limit} is below the length of '{piece}', {measured(piece)}; raise it"
            )
        middle = len(piece) // 2
        space = max(piece.rfind(" ", 0, middle), piece.rfind("\n", 0, middle)) + 1
        for start, end in ((0, space or middle), (space or middle, len(piece))):
            for inner, part in self._fitting(piece[start:end], measured):
                yield start + inner, part


def _measured(length: Callable[[str], int], title: str, text: str) -> int:
    return length(title + text.replace("\r", " "))


# Parts a long text where it is least felt, so that neither memory nor time grows with a document's length.

_SENTENCE = re.compile(r".*(?:[.!?…؟।](?=\s)|[。！？])", re.S)
_SPACE = re.compile(r".*(?=\s)", re.S)


def end_of_block(text: str, start: int, size: int) -> int:
    """Return where a block that begins at `start` ends, at most `size` characters on.

    That is after the last paragraph of the second half, else after its last line, sentence or word, else anywhere.
    """
    if len(text) - start <= size:
        return len(text)
    middle, last = start + size // 2, start + size
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, middle, last)
        if found >= 0:
            return found + len(mark)
    for pattern in (_SENTENCE, _SPACE):
        if match := pattern.match(text, middle, last):
            return match.end()
    return last
