"""Collects the text of a page: paragraphs, each in the language of most of its letters, and the line of every part."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from metasearch.documents.section import Section
from metasearch.formats.blank import blank


@dataclass
class _Stretch:
    """Paragraphs in one language."""

    language: str
    text: list[str] = field(default_factory=list)
    size: int = 0
    marks: list[tuple[int, int]] = field(default_factory=list)

    def add(self, text: str, line: int) -> None:
        if not self.marks or self.marks[-1][1] != line:
            self.marks.append((self.size, line))
        self.text.append(text)
        self.size += len(text)


class Paragraphs:
    """The text of a page, as it is read."""

    def __init__(self) -> None:
        self.stretches: list[_Stretch] = []
        self.pieces: list[tuple[str, int]] = []
        self.letters: Counter[str] = Counter()
        self.apart = 0

    def add(self, text: str, line: int, language: str, exact: bool = False) -> None:
        """Add text to the paragraph that was begun, with one space between words unless it is shown exactly."""
        if not exact and (not self.pieces or self.pieces[-1][0][-1].isspace()):
            text = text.lstrip(" ")
        if text:
            self.pieces.append((text, line))
            self.letters[language] += sum(map(str.isalnum, text))

    def part(self, ends: int) -> None:
        """End the paragraph, with at least so many line ends before the next."""
        if not blank("".join(text for text, _ in self.pieces)):
            language = self._language()
            if not self.stretches or self.stretches[-1].language != language:
                self.stretches.append(_Stretch(language))
            elif self.apart:
                stretch = self.stretches[-1]
                stretch.add("\n" * self.apart, stretch.marks[-1][1])
            for text, line in self._trimmed():
                self.stretches[-1].add(text, line)
            self.apart = 0
        self.pieces, self.letters = [], Counter()
        self.apart = max(self.apart, ends)

    def _language(self) -> str:
        language, letters = self.letters.most_common(1)[0]
        # Marks without a letter, such as a row of stars, are in the language of what stands before.
        return language if letters or not self.stretches else self.stretches[-1].language

    def _trimmed(self) -> Iterator[tuple[str, int]]:
        """Yield the pieces of the paragraph, without white space after the last one with text."""
        while not self.pieces[-1][0].strip():
            self.pieces.pop()
        *before, (last, line) = self.pieces
        yield from before
        yield last.rstrip(), line

    def sections(self, title: str) -> Iterator[Section]:
        """Yield the sections of the page; `title` is that of all of them."""
        self.part(0)
        for stretch in self.stretches:
            yield Section("".join(stretch.text), language=stretch.language, title=title, marks=stretch.marks)
