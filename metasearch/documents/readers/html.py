"""HTML as a browser shows it: without scripts, styles and what is hidden; parsed with selectolax (Lexbor, HTML 5).

`lang` attributes tell the language: that of most letters of a paragraph is the paragraph's, so that a word of another
language does not part a sentence. The parser knows no lines, so white space that says the line is put into the source
where text can follow, and taken out of the text again.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from metasearch.documents.content import whole
from metasearch.documents.problems import Notes
from metasearch.documents.readers._elements import BLOCKS, CELLS, EXACT, LINES, is_hidden
from metasearch.documents.readers._paragraphs import Paragraphs
from metasearch.documents.section import Section
from metasearch.documents.settings import Settings
from metasearch.spec.languages import parse_tag

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
    """Yield the text of a page, a section for each stretch in one language."""
    source = whole(path, _MOST).replace("\f", " ")
    root = LexborHTMLParser(_marked(source)).root
    if root is not None:
        walk = _Walk(_first_line(source))
        walk.through(root)
        for written, problem in walk.unknown.items():
            notes.add("language ignored", f"{path}:{_find_language(source, written)}: lang: {problem}")
        yield from walk.paragraphs.sections(walk.title)


def _find_language(source: str, written: str) -> int:
    """Return the first line in which an attribute `lang` has a value; the first of the page if entities hide it."""
    match = re.search(rf"lang\s*=\s*[\"']?{re.escape(written)}", source, re.I)
    return 1 + source.count("\n", 0, match.start()) if match else 1


def _first_line(source: str) -> int:
    """Return the line of text that stands before any element; the parser drops the line ends before it."""
    before = _BEFORE.match(source, 0, _HEAD)
    return 1 + (before[0].count("\n") if before else 0)


def _marked(text: str) -> str:
    """Return a page in which the line is written after each line end, and before text that follows a tag or comment."""
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
    """Goes through the elements of a page in their order."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.unknown: dict[str, str] = {}
        """Attribute `lang` that is no language tag → why."""
        self.title = ""
        self.paragraphs = Paragraphs()
        self.styles: list[tuple[int, str, bool]] = [(0, "", False)]
        """Language and exactness of white space in the elements around that change them, the innermost last."""

    def through(self, root: LexborNode) -> None:
        """Add the text of an element; without recursion, since pages nest deep."""
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
        """Take what stands at the beginning of a node; return whether it is an element that is shown."""
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
        """Take what stands at the end of an element."""
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
        """Return the tag of an attribute; empty where it says that the language is not known, or is no tag."""
        try:
            return parse_tag(written) if written.strip() else ""
        except ValueError as error:
            self.unknown[written] = str(error)
            return ""

    def text(self, text: str) -> None:
        """Add the text of a node, with the lines that are written in it."""
        _, language, exact = self.styles[-1]
        # Text and marks take turns.
        for i, piece in enumerate(_MARK.split(text)):
            if i % 2:
                self.line = int(piece.translate(_BITS), 2)
            elif piece:
                self.paragraphs.add(piece if exact else _WHITE.sub(" ", piece), self.line, language, exact)
