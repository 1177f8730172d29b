"""Sections and notes from document readers, and passages as search results."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from metasearch.config.languages import UNKNOWN, parse_tag
from metasearch.data.formats.blank import blank

BELOW = " › "
"""What stands between the headings above a passage."""
_MOST = 20
"""Skipped rows of a document that get a line each."""


class HeadingMark(NamedTuple):
    """Headings above a text from an offset on, outermost first, and the id of the nearest element, or empty."""

    offset: int
    path: tuple[str, ...]
    anchor: str = ""
    kind: str = ""
    """`link` for text that is a link, `footer` for the footer of a part, else empty."""


@dataclass(frozen=True)
class Section:
    """Running text in a document, with LF at the end of lines; title and language of the document, or empty."""

    text: str
    line: int = 1
    """First line in the file."""
    language: str = ""
    title: str = ""
    marks: Sequence[tuple[int, int]] | None = None
    """Ascending offsets in the text with their lines in the file; None if both have the same lines."""
    markdown: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of a row, as JSON values."""
    headings: Sequence[HeadingMark] = ()
    """By ascending offsets."""
    around: str = ""
    """Language of the page, of which this is a part."""

    def heading(self, offset: int) -> HeadingMark:
        """Return the headings and the anchor of the text at an offset."""
        passed = bisect_right(self._heading_starts, offset)
        return self.headings[passed - 1] if passed else HeadingMark(0, ())

    @cached_property
    def _heading_starts(self) -> list[int]:
        return [mark.offset for mark in self.headings]

    @cached_property
    def heading_offsets(self) -> frozenset[int]:
        """Offsets at which headings begin."""
        marks = pairwise((HeadingMark(0, ()), *self.headings))
        return frozenset(mark.offset for before, mark in marks if mark.path != before.path)

    def line_at(self, offset: int) -> int:
        """Return the line of the text at an offset."""
        passed = bisect_right(self.line_marks, offset, key=itemgetter(0))
        return self.line_marks[passed - 1][1] if passed else self.line

    @cached_property
    def line_marks(self) -> Sequence[tuple[int, int]]:
        """Ascending offsets at which lines of the file begin, with their numbers."""
        if self.marks is not None:
            return self.marks
        return [(end.end(), line) for line, end in enumerate(re.finditer("\n", self.text), self.line + 1)]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Attributes:
        text: text to search and to show, with the document's title before it if titles are on and it has none.
        file: path of the document as the user named it, with forward slashes.
        line: first line in the file, from 1.
        language: a tag such as `de` or `zh-Hant`; `und` if unknown.
        fields: further fields of the row, such as its `id` or `price`.
        heading: headings above its beginning, such as `Writer › Page styles › Margins`; empty without any.
        anchor: id of the nearest element of an HTML page, as in `page.html#margins`; empty without one.
    """

    text: str
    file: str
    line: int
    language: str = UNKNOWN
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    heading: str = ""
    anchor: str = ""


class Dropped(NamedTuple):
    """A block of a document that is no passage."""

    reason: str
    text: str
    line: int


class Problem(NamedTuple):
    """Something that cannot be read."""

    outcome: str
    message: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.message}"


@dataclass
class Notes:
    """Skipped, changed or wrong parts of a document: counts by kind, problems, and the number of unreadable rows.

    Attributes:
        detected: language that a document states, language of the text by detection → number of passages.
        repeated: text of a block that most pages share and that was left out → number of pages.
    """

    NO_PAGE: ClassVar = (
        "pages that lead to another one or are not for searches (noindex), skipped; --keep-repeated keeps them"
    )

    counts: Counter[str] = field(default_factory=Counter)
    detected: Counter[tuple[str, str]] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    rows: int = 0
    tags: Counter[str] = field(default_factory=Counter)
    """Text in place of a language tag → how often it is there."""

    def include(self, other: "Notes") -> None:
        """Add what was noted elsewhere."""
        for name, noted in vars(other).items():
            vars(self)[name] += noted

    def skip_row(self, message: str) -> None:
        """Note a row that cannot be read, and is not."""
        self.rows += 1
        if self.rows <= _MOST:
            self.problems.append(Problem("row skipped", message))

    def drop(self, reason: str, texts: Iterable[tuple[str, int]]) -> None:
        """Note texts that are no passages, each with its line."""
        found = ((" ".join(text.split()), line) for text, line in texts)
        self.dropped += (Dropped(reason, text, line) for text, line in found if not blank(text))

    def add(self, outcome: str, message: str) -> None:
        """Record a part that is not read as the document declares."""
        self.problems.append(Problem(outcome, message))

    def read_language(self, written: str, place: str) -> str:
        """Return a language tag in canonical form; empty for a blank text, and for one that is none, which is noted."""
        try:
            return "" if blank(written) else parse_tag(written)
        except ValueError as error:
            self.tags[written] += 1
            if self.tags[written] == 1 and len(self.tags) <= _MOST:
                self.add("language ignored", f"{place}: {error}")
            return ""

    def close(self, file: str) -> None:
        """Note how many rows have no line of their own; `file` is the document's name."""
        if self.rows > _MOST:
            self.problems.append(Problem("rows skipped", f"{file}: {self.rows - _MOST:,} more"))
        for written, count in list(self.tags.items())[:_MOST]:
            if count > 1:
                self.add("language ignored", f"{file}: '{written[:40]}' {count - 1:,} more times")
        if len(self.tags) > _MOST:
            self.add("language ignored", f"{file}: {len(self.tags) - _MOST:,} more values")
