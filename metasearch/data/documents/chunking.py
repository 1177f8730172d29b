"""Cuts text into passages: whole sentences, as many as fit, with semantic-text-splitter.

Boundaries follow Unicode (UAX 29) and, in Thai, Khmer, Lao and Burmese, a dictionary.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

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
        self.estimated = settings.length is not len

    def cut(self, section: Section, notes: Notes) -> Iterator[tuple[int, str]]:
        """Yield the passages in a section in order, each with its offset."""
        title = f"{section.title}\n" if section.title and self.settings.titles else ""
        text, shift = section.text, 0
        if title and 2 * self.settings.length(title) > self.settings.limit:
            notes.counts[LONG_TITLE] += 1
            text, shift, title = title + text, len(title), ""
        start = 0
        while start < len(text):
            end = end_of_block(text, start, self.size)
            for at, part in self._pieces(_PHRASE.sub("\r", text[start:end]), section.markdown, title):
                # In Markdown the splitter leaves blank lines before and after a passage.
                blanks = _BLANKS.match(part).end()  # type: ignore[union-attr]
                offset, part = start + at + blanks, part[blanks:].rstrip()
                if _shown(part, section.markdown):
                    yield max(0, offset - shift), title + part
            start = end

    def _pieces(self, block: str, markdown: bool, title: str) -> Iterator[tuple[int, str]]:
        """Yield the pieces of a block with their offsets: by estimated lengths until an estimate is wrong."""
        measured = partial(_measured, self.settings.length, title)
        if self.estimated:
            found = self._split(block, markdown, title, self.settings.estimate)
            self.estimated = all(measured(piece) <= self.settings.limit for _, piece in found)
            if self.estimated:
                yield from ((at, piece.replace("\r", " ")) for at, piece in found)
                return
        for at, piece in self._split(block, markdown, title, self.settings.length):
            for inner, part in self._fitting(piece.replace("\r", " "), measured):
                yield at + inner, part

    def _split(self, block: str, markdown: bool, title: str, length: Callable[[str], int]) -> list[tuple[int, str]]:
        kind = MarkdownSplitter if markdown else TextSplitter
        limit, overlap = self.settings.limit, self.settings.overlap
        if length is len:
            # The splitter counts characters ten times as fast itself.
            room = limit - len(title)
            splitter = kind(room, min(overlap, room - 1))
        else:
            # The splitter measures what overlaps in the same way, with the title and what every passage begins with.
            measured = partial(_measured, length, title)
            splitter = kind.from_callback(measured, limit, min(overlap + measured(""), limit - 1) if overlap else 0)
        found: list[tuple[int, str]] = splitter.chunk_indices(block)
        return found

    def _fitting(self, piece: str, measured: Callable[[str], int]) -> Iterator[tuple[int, str]]:
        """Yield a piece, or parts if it is too long: the splitter sees only a sum of lengths."""
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


def _shown(text: str, markdown: bool) -> bool:
    """Return whether a passage shows something; of Markdown, a fence or a rule alone does not."""
    return any(map(str.isalnum, text)) if markdown else not blank(text)


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
