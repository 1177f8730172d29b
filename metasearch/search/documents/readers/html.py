"""HTML as displayed: without scripts, styles and hidden parts, and without a site's navigation and footers.

A paragraph has the `lang` of most of its letters, so a foreign word does not split a sentence.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from metasearch.data.formats.blank import blank
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import HeadingMark, Notes, Section
from metasearch.search.documents.readers.text import lines

SUFFIXES = (".html", ".htm")
HOLDS = "page"

_MOST = 2**24
"""Characters of a page, which is parsed as a whole."""
_MOST_UNCLOSED = 20
"""Start tags of a page without an end."""
_WHITE = re.compile(r"[ \t\n\r\f]+")
_EMPTY_COMMENT = re.compile("<!---?>")
ENDLESS, _END = "\0", "\0>"
"""Beginning of a comment without an end, which hides the rest of the page, and the end that the parser wants."""
_LINE_FEED = re.compile("&(?:#0*10|#x0*a|newline);", re.I)


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_HIDDEN = _set(
    "script style template noscript svg iframe object embed canvas audio video datalist noembed noframes title dialog "
    "annotation annotation-xml rp rt rtc"
)
"""Elements without running text. `rt` is the reading of the characters before it, which would split their word."""
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.I)
_FURNITURE_ROLES = _set("banner contentinfo navigation search")
_FURNITURE_CLASSES = _set("headerlink navfooter navheader")
"""Classes of navigation in pages of Sphinx, MkDocs and DocBook."""
_SECTIONS = _set("article aside blockquote details figure main section td")
"""Elements that a `footer` may belong to; without them it is the page's (HTML-AAM, 3.5)."""
_HEADINGS = _set("h1 h2 h3 h4 h5 h6")
_BLOCKS = _set(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend main menu nav ol optgroup p pre search section "
    "summary table ul"
)
_LINES = _set("br li option tr tbody thead tfoot")
_CELLS = _set("td th")
_INLINE = _set("a abbr b bdi bdo cite code data dfn em font i kbd label mark q s samp small span strong sub sup u var")
"""Elements in running text. A script shows one that is `hidden`, such as the keys of a platform."""
_EXACT = _set("pre textarea listing xmp plaintext")
_VOID = _set("area base br col embed hr img input link meta param source track wbr")
_RUBY = _set("rb rt rp rtc")
_ENDED_BY: dict[str, frozenset[str]] = {
    "head": _set("body"),
    "p": _BLOCKS | _CELLS | _set("li tr thead tbody tfoot"),
    "li": _set("li"),
    "optgroup": _set("optgroup"),
    "option": _set("option optgroup"),
    "tr": _set("tr tbody tfoot"),
    **dict.fromkeys(("caption", "colgroup"), _set("colgroup thead tbody tfoot tr")),
    **dict.fromkeys(("thead", "tbody"), _set("tbody tfoot")),
    **dict.fromkeys(("dt", "dd"), _set("dt dd")),
    **dict.fromkeys(_CELLS, _set("td th tr tbody tfoot")),
    **dict.fromkeys(_RUBY - {"rtc"}, _RUBY),
}
"""Element that needs no end tag → the elements whose start tag ends it."""


ENDLESS_COMMENT = "a comment has no end, which hides the rest of the page"


class _Element(NamedTuple):
    tag: str = ""
    language: str = ""
    shown: bool = True
    exact: bool = False
    main: bool = False
    hidden: bool = False
    """Whether a script may show it, in running text."""


Piece = tuple[str, int]
"""Text and its line."""


class _Paragraph(NamedTuple):
    """A paragraph in one language, the line ends before it, and the headings and the anchor where it begins."""

    language: str
    letters: int
    pieces: list[Piece]
    gap: int
    main: bool
    heading: tuple[str, ...]
    anchor: str


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a page's text, one section per stretch in one language."""
    parts, size = [], 0
    for line in lines(path):
        parts.append(line)
        size += len(line)
        if size > _MOST:
            raise DataError(f"{path}: the file has more than {_MOST:,} characters, the limit for such documents")
    yield from html_sections("".join(parts), path, notes, settings.keep_repeated)


def html_sections(source: str, path: Path, notes: Notes, whole: bool = True) -> Iterator[Section]:
    """Yield the text sections of HTML read from a file, with navigation and footers if `whole`."""
    page = _Page(path, notes, whole)
    page.feed(prepare_html(source))
    page.close()
    page.end_paragraph(0)
    found = page.paragraphs if whole else _main_content(page.paragraphs)
    for language, paragraphs in _stretches(found):
        parts, marks, headings, size = [], [], list[HeadingMark](), 0
        for number, each in enumerate(paragraphs):
            pieces = [("\n" * each.gap, each.pieces[0][1])] * bool(number) + each.pieces
            headings.append(HeadingMark(size + each.gap * bool(number), each.heading, each.anchor))
            for text, line in pieces:
                marks.append((size, line))
                parts.append(text)
                size += len(text)
        yield Section("".join(parts), language=language, title=page.title, marks=marks, headings=headings)


def _main_content(paragraphs: Sequence[_Paragraph]) -> Sequence[_Paragraph]:
    """Return the paragraphs in `main` if they have most letters, else all."""
    inside = [each for each in paragraphs if each.main]
    most = 2 * sum(each.letters for each in inside) > sum(each.letters for each in paragraphs)
    return inside if most else paragraphs


def _stretches(paragraphs: Sequence[_Paragraph]) -> list[tuple[str, list[_Paragraph]]]:
    """Return successive paragraphs in one language together."""
    found: list[tuple[str, list[_Paragraph]]] = []
    for each in paragraphs:
        # Marks without a letter, such as a row of stars, are in the language of the text before.
        if found and (found[-1][0] == each.language or not each.letters):
            found[-1][1].append(each)
        else:
            found.append((each.language, [each]))
    return found


def prepare_html(source: str) -> str:
    """Return a page that the parser reads without an error, with the same lines."""
    # It fails on unknown sections such as `<![x[`, and written line feeds would count as lines.
    source = _LINE_FEED.sub(" ", source.replace("<![", "<! ["))
    source = source.replace("--!>", "-->")
    source = _EMPTY_COMMENT.sub("<!---->", source)
    # It searches the whole rest of the page for the end of each comment, which the last ones may not have. A page has
    # no NUL characters.
    before, end, rest = source.rpartition("-->")
    return before + end + (rest.replace("<!--", f"<!{ENDLESS}--") + _END if "<!--" in rest else rest)


def _has_hidden(attributes: Mapping[str, str | None]) -> bool:
    """Return whether an element has the attribute `hidden`; a search in the page shows `hidden=until-found`."""
    return "hidden" in attributes and (attributes["hidden"] or "").lower() != "until-found"


def _is_hidden(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """Return whether a page never shows an element."""
    hidden = tag not in _INLINE and _has_hidden(attributes)
    opened = tag == "dialog" and "open" in attributes
    return hidden or (tag in _HIDDEN and not opened) or bool(_HIDING.search(attributes.get("style") or ""))


class _Page(HTMLParser):
    """Collects a page's paragraphs."""

    def __init__(self, path: Path, notes: Notes, whole: bool) -> None:
        super().__init__()
        self._path, self._notes, self._whole = path, notes, whole
        self._languages: dict[str, str] = {}
        """Value of a `lang` attribute → language tag, empty if it is not valid."""
        self._unclosed_tags = 0
        self.title = ""
        self.paragraphs: list[_Paragraph] = []
        self._headings: list[tuple[int, str]] = []
        """Level and text of the headings above the current place."""
        self._level = 0
        """Level of the heading that is open, 0 without one."""
        self._anchor = self._first_anchor = ""
        self._main = False
        self._open = [_Element()]
        self._count = Counter[str]()
        self._pieces: list[Piece] = []
        self._letters = Counter[str]()
        self._shown = False
        """Whether the open paragraph has text that is not hidden."""
        self._gap = 0
        self._ended = False

    def parse_starttag(self, i: int) -> int:
        """Parse the start tag at an offset and return its end, or -1 if it has none.

        `DataError` if many tags have none: the parser searches the whole rest of the page for each end.
        """
        end = super().parse_starttag(i)
        self._unclosed_tags += end < 0
        if self._unclosed_tags > _MOST_UNCLOSED:
            line = self.getpos()[0]
            raise DataError(f"{self._path}:{line}: more than {_MOST_UNCLOSED} tags have no end; a quote may be missing")
        return end

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while tag in _ENDED_BY.get(self._open[-1].tag, ()):
            self.handle_endtag(self._open[-1].tag)
        around, attributes = self._open[-1], dict(attrs)
        shown = around.shown and not _is_hidden(tag, attributes)
        if shown:
            self._separate(tag)
            shown = self._whole or not self._is_boilerplate(tag, attributes)
        if shown:
            self._anchor = attributes.get("id") or (attributes.get("name") if tag == "a" else "") or self._anchor
            if tag in _HEADINGS:
                self._level = int(tag[1])
                self._headings = [each for each in self._headings if each[0] < self._level]
        if tag not in _VOID:
            written = attributes.get("lang", attributes.get("xml:lang"))
            language = around.language if written is None else self._read_language(written)
            main = around.main or tag == "main" or attributes.get("role") == "main"
            hidden = _has_hidden(attributes)
            if shown and hidden:
                self._add(" ", self.getpos()[0])  # The keys of two platforms are two words.
            exact = around.exact or tag in _EXACT
            self._open.append(_Element(tag, language, shown, exact, main, around.hidden or hidden))
            self._count[tag] += 1

    def _is_boilerplate(self, tag: str, attributes: Mapping[str, str | None]) -> bool:
        """Return whether an element is a site's navigation, search or footer rather than content."""
        if tag == "nav" or (attributes.get("role") or "") in _FURNITURE_ROLES:
            return True
        if tag == "footer":
            return not any(self._count[each] for each in _SECTIONS)
        if tag == "aside":  # elsewhere it may be a note
            return self._open[-1].tag in ("", "html", "body")
        return not _FURNITURE_CLASSES.isdisjoint((attributes.get("class") or "").split())

    def handle_endtag(self, tag: str) -> None:
        if not self._count[tag]:
            if tag in ("p", "br") and self._open[-1].shown:  # alone they show as a line end
                self._separate(tag)
            return
        ended = ""
        while ended != tag:
            ended = self._open[-1].tag
            if self._open[-1].shown:
                self._separate(ended)
                if ended in _HEADINGS:
                    self._level = 0
            self._open.pop()
            self._count[ended] -= 1

    def handle_comment(self, data: str) -> None:
        """End the page at a comment without an end, as browsers do."""
        if data.startswith(ENDLESS) and not self._ended:
            self._notes.add("not shown", f"{self._path}:{self.getpos()[0]}: {ENDLESS_COMMENT}")
            self._ended = True

    def handle_data(self, data: str) -> None:
        here = self._open[-1]
        data = data.removesuffix(_END)
        if self._ended:
            return
        if here.tag == "title" and self._open[-2].shown:
            self.title = self.title or " ".join(data.split())
        elif here.shown:
            for line, text in enumerate(re.findall(".*\n|.+", data), self.getpos()[0]):
                self._add(text, line)

    def end_paragraph(self, gap: int) -> None:
        """End the paragraph, with at least `gap` line ends before the next."""
        pieces, letters, shown = self._pieces, self._letters, self._shown
        self._pieces, self._letters, self._shown = [], Counter(), False
        if shown:
            while not pieces[-1][0].strip():
                pieces.pop()
            pieces[-1] = pieces[-1][0].rstrip(), pieces[-1][1]
            language, count = letters.most_common(1)[0]
            if self._level:
                self._add_heading(" ".join("".join(text for text, _ in pieces).split()))
            heading = tuple(text for _, text in self._headings)
            main = self._main
            self.paragraphs.append(_Paragraph(language, count, pieces, self._gap, main, heading, self._first_anchor))
            self._gap = 0
        self._gap = max(self._gap, gap)

    def _add_heading(self, text: str) -> None:
        """Add a heading to the path, or a further line to the heading that is open."""
        if self._headings and self._headings[-1][0] == self._level:
            text = f"{self._headings.pop()[1]} {text}"
        self._headings.append((self._level, text))

    def _separate(self, tag: str) -> None:
        """Begin another paragraph, line or word where an element begins or ends."""
        if tag in _BLOCKS:
            self.end_paragraph(2)
        elif tag in _LINES:
            self.end_paragraph(1)
        elif tag in _CELLS:
            self._add(" ", self.getpos()[0])

    def _add(self, text: str, line: int) -> None:
        """Add text, with one space between words unless it is shown exactly."""
        here = self._open[-1]
        if not here.exact:
            text = _WHITE.sub(" ", text)
        begins = not self._pieces or self._pieces[-1][0][-1].isspace()
        if begins and not (here.exact and text.strip()):
            text = text.lstrip(" \n")
        if text:
            if not self._pieces:
                self._first_anchor, self._main = self._anchor, here.main
            self._pieces.append((text, line))
            self._letters[here.language] += sum(map(str.isalnum, text))
            self._shown |= not (here.hidden or blank(text))

    def _read_language(self, written: str) -> str:
        if written not in self._languages:
            self._languages[written] = self._notes.read_language(written, f"{self._path}:{self.getpos()[0]}: lang")
        return self._languages[written]
