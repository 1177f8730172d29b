"""HTML as displayed: without scripts, styles and hidden parts; parsed with selectolax (Lexbor, HTML 5).

A paragraph has the `lang` of most of its letters, so a foreign word does not split a sentence. The parser knows no
lines, so white space that encodes the line is inserted where text can follow, and removed from the text again.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from metasearch.config.languages import parse_tag
from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.passage import Notes, Section
from metasearch.data.documents.readers.text import lines
from metasearch.data.formats.blank import blank
from metasearch.errors import DataError

_MOST = 2**24
"""Characters of a page, which is parsed as a whole."""
_HEAD = 2**14
"""Characters in which the first element begins, or the text without any."""
_WHITE = re.compile(r"[ \t\n\r\f]+")
_BEFORE = re.compile(r"(?:\s|<!--.*?-->|<![^>]*>|<html[^>]*>)*", re.S | re.I)
_DIGITS = 26
_MARK = re.compile(rf"\f([ \t]{{{_DIGITS}}})")
_BITS = {ord(" "): "0", ord("\t"): "1"}


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a page's text, one section per stretch in one language."""
    parts, size = [], 0
    for line in lines(path):
        parts.append(line)
        size += len(line)
        if size > _MOST:
            raise DataError(f"{path}: the file has more than {_MOST:,} characters, the limit for such documents")
    yield from html_sections("".join(parts), path, notes)


def html_sections(source: str, path: Path, notes: Notes) -> Iterator[Section]:
    """Yield the text sections of HTML read from a file."""
    source = source.replace("\f", " ")
    root = LexborHTMLParser(_marked(source)).root
    if root is not None:
        walk = _Walk(_first_line(source))
        walk.through(root)
        for written, problem in walk.unknown.items():
            match = re.search(rf"lang\s*=\s*[\"']?{re.escape(written)}", source, re.I)
            line = 1 + source.count("\n", 0, match.start() if match else 0)
            notes.add("language ignored", f"{path}:{line}: lang: {problem}")
        yield from walk.paragraphs.sections(walk.title)


def _first_line(source: str) -> int:
    """Return the first line of text before any element; the parser drops earlier line ends."""
    before = _BEFORE.match(source, 0, _HEAD)
    return 1 + (before[0].count("\n") if before else 0)


def _marked(text: str) -> str:
    """Return a page with line numbers written after each line end, and before text after a tag or comment."""
    pieces = re.split("(\n|>)", text)
    parts: list[str] = []
    line = 1
    for piece, after in zip(pieces, [*pieces[1:], ""], strict=True):
        parts.append(piece)
        line += piece == "\n"
        # A line end within a tag, a comment or a script is no text, and its mark is lost.
        if piece == "\n" or (piece == ">" and line > 1 and after.lstrip()[:1] not in ("", "<")):
            parts.append(_mark(line))
    return "".join(parts)


def _mark(line: int) -> str:
    return "\f" + f"{line:0{_DIGITS}b}".replace("0", " ").replace("1", "\t")


class _Walk:
    """A walk through a page's elements in order."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.unknown: dict[str, str] = {}
        """Attribute `lang` that is no language tag → why."""
        self.title = ""
        self.paragraphs = Paragraphs()
        self.styles: list[tuple[int, str, bool]] = [(0, "", False)]
        """Language and exactness of white space in the elements around that change them, the innermost last."""

    def through(self, root: LexborNode) -> None:
        """Add an element's text, without recursion, because pages nest deep."""
        node: LexborNode | None = root
        around: list[LexborNode] = []
        while node is not None:
            shown = self.enter(node)
            if shown and (child := node.child) is not None:
                around.append(node)
                node = child
                continue
            if shown:
                self.leave(node)
            while (following := node.next) is None and around:
                node = around.pop()
                self.leave(node)
            node = following if around else None

    def enter(self, node: LexborNode) -> bool:
        """Process the start of a node; return whether it is a visible element."""
        if node.is_text_node:
            self.text(node.text_content or "")
        if not node.is_element_node:
            return False
        tag, attributes = node.tag or "", node.attributes
        if tag == "title" and not self.title:
            self.title = " ".join(_MARK.sub("", node.text()).split())
        if is_hidden(tag, attributes):
            return False
        written = attributes.get("lang", attributes.get("xml:lang"))
        _, language, exact = self.styles[-1]
        if written is not None or tag in EXACT:
            language = language if written is None else self.language(_MARK.sub("", written))
            self.styles.append((node.mem_id, language, exact or tag in EXACT))
        self.part(tag)
        return True

    def leave(self, node: LexborNode) -> None:
        """Process the end of an element."""
        if self.styles[-1][0] == node.mem_id:
            self.styles.pop()
        self.part(node.tag or "")

    def part(self, tag: str) -> None:
        """Begin another paragraph, line or word where an element begins or ends."""
        if tag in BLOCKS:
            self.paragraphs.part(2)
        elif tag in LINES:
            self.paragraphs.part(1)
        elif tag in CELLS:
            self.paragraphs.add(" ", self.line, self.styles[-1][1])

    def language(self, written: str) -> str:
        """Return an attribute's tag; empty if it declares an unknown language or is not a tag."""
        try:
            return parse_tag(written) if written.strip() else ""
        except ValueError as error:
            self.unknown[written] = str(error)
            return ""

    def text(self, text: str) -> None:
        """Add a node's text, with its line numbers."""
        _, language, exact = self.styles[-1]
        # Text and marks take turns.
        for i, piece in enumerate(_MARK.split(text)):
            if i % 2:
                self.line = int(piece.translate(_BITS), 2)
            elif piece:
                self.paragraphs.add(piece if exact else _WHITE.sub(" ", piece), self.line, language, exact)


# How a browser shows HTML elements: hidden, as a block, as a line, as a table cell, or with exact white space.


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


HIDDEN = _set(
    "script style template noscript svg iframe object embed canvas audio video datalist noembed noframes title "
    "annotation annotation-xml rp rt rtc"
)
"""Elements without running text. `rt` is the reading of the characters before it, which would split their word."""
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)


def is_hidden(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """Return whether a browser hides an element, or its text is not running text."""
    opens = tag == "dialog" or "popover" in attributes
    return (
        tag in HIDDEN
        or "hidden" in attributes
        or (opens and "open" not in attributes)
        or HIDING.search(attributes.get("style") or "") is not None
    )


BLOCKS = _set(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend main menu nav ol optgroup p pre search section "
    "summary table ul"
)
LINES = _set("br li option tr tbody thead tfoot")
CELLS = _set("td th")
EXACT = _set("pre textarea listing xmp plaintext")


# Collects the text of a page: paragraphs, each in the language of most of its letters, and the line of every part.


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
    """A page's text during parsing."""

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
        """End the paragraph, with at least `ends` line ends before the next."""
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
        # Marks without a letter, such as a row of stars, are in the language of the text before.
        return language if letters or not self.stretches else self.stretches[-1].language

    def _trimmed(self) -> Iterator[tuple[str, int]]:
        """Yield the pieces of the paragraph, without white space after the last one with text."""
        while not self.pieces[-1][0].strip():
            self.pieces.pop()
        *before, (last, line) = self.pieces
        yield from before
        yield last.rstrip(), line

    def sections(self, title: str) -> Iterator[Section]:
        """Yield the page's sections; all have the `title`."""
        self.part(0)
        for stretch in self.stretches:
            yield Section("".join(stretch.text), language=stretch.language, title=title, marks=stretch.marks)
