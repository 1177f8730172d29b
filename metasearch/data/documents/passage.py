"""Sections from document readers, and passages as search results."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metasearch.config.languages import UNKNOWN

# What a reader finds in a document: running text in one language, and the line of the file of every part.


@dataclass(frozen=True)
class Section:
    """Running text in a document.

    Attributes:
        text: with LF at the end of lines.
        line: of the file, from 1, in which the text begins.
        language: a tag, where the document tells it; else empty.
        title: of the document or the row; empty where it has none.
        marks: offsets in the text, ascending, from which on it stands in another line, and that line. None where each
            line end of the text begins the next line of the file.
        markdown: whether headings, lists and code are marked as in Markdown.
        fields: further fields of a row: values that JSON can hold.
    """

    text: str
    line: int = 1
    language: str = ""
    title: str = ""
    marks: Sequence[tuple[int, int]] | None = None
    markdown: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)

    def lines(self, offsets: Iterable[int]) -> Iterator[int]:
        """Yield the line for each ascending offset."""
        line, before = self.line, 0
        for offset in offsets:
            if self.marks is None:
                line, before = line + self.text.count("\n", before, offset), offset
                yield line
            else:
                passed = bisect_right(self.marks, offset, key=lambda mark: mark[0])
                yield self.marks[passed - 1][1] if passed else self.line


# A part of a document that a search finds, and the place it was taken from.


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Attributes:
        text: what is searched and shown; begins with the document's title and a line end where titles are put before.
        file: the document as users see it, with forward slashes: the path as it was given, then that within the folder.
        line: the line of the file, from 1, in which the passage begins.
        language: a tag such as `de` or `zh-Hant`; `und` where it is not known.
        fields: further fields of the row, such as its `id` or `price`.
    """

    text: str
    file: str
    line: int
    language: str = UNKNOWN
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
