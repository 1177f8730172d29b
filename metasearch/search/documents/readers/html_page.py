"""The parser of HTML pages: elements become paragraphs, as a browser displays them."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from html.parser import HTMLParser
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from metasearch.data.formats.blank import blank
from metasearch.errors import DataError
from metasearch.search.documents.passage import Notes

_MOST_UNCLOSED = 20
"""Start tags of a page without an end."""
_WHITE = re.compile(r"[ \t\n\r\f]+")
_NAME = "[a-zA-Z][a-zA-Z0-9]*"
_TOKEN = re.compile(rf'<(?:/({_NAME})|({_NAME})((?:[ \n]+[a-zA-Z][a-zA-Z0-9:_-]*="[^"&<>\0]*")*)[ \n]*)>([^<&]*(?=<))?')
"""A tag as most programs write it, and the text up to the next tag: these take half as long as the parser's own way."""
_ATTRIBUTE = re.compile('([^ \n=]+)="([^"]*)"')
_LINE = re.compile(".*\n|.+")
_EMPTY_COMMENT = re.compile("<!---?>")
ENDLESS, _END = "\0", "\0>"
"""Beginning of a comment without an end, which hides the rest of the page, and the end that the parser wants."""
_LINE_FEED = re.compile("&(?:#0*10|#x0*a|newline);", re.I)


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_OWN_CONTENT = _set("iframe noembed noframes noscript plaintext script style textarea title xmp")
"""Elements whose content releases of Python read in different ways: their tags are left to the parser."""
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.I)
_FURNITURE = _set("nav footer aside")
_FURNITURE_ROLES = _set("banner contentinfo navigation search")
_FURNITURE_CLASSES = _set("headerlink navfooter navheader")
"""Classes of navigation in pages of Sphinx, MkDocs and DocBook."""
_NOTE = re.compile(r"\b(?:note|doc-\w+|admonition\w*|warning|caution|danger|tip|hint|important|callout|alert)\b", re.I)
"""Roles and classes of an `aside` that is content."""
_WRAPPER = re.compile(r"<(?:main|article)\b|\brole\s*=\s*[\"']?main\b", re.I)
_CONTROLLED = re.compile(r"(?:aria-controls|data-(?:bs-)?target)\s*=\s*[\"']?#?([^\"'\s>]+)", re.I)
"""The id of what a button shows."""
_LEADS_ON = re.compile(r"\s*0*[0-5]?(?:\.[\d.]*)?[\s;,]+[^\s;,]")
"""Content of `<meta http-equiv="refresh">` of a page that another one replaces at once."""
_SILENT = _set(
    "script style template iframe object embed canvas audio video datalist noembed noframes "
    "title annotation annotation-xml rp rt rtc"
)
"""Elements whose text no reader ever sees."""
_HIDDEN = _SILENT | {"dialog", "noscript", "svg"}
"""Elements without running text. `rt` is the reading of the characters before it, which would split their word."""
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
_DECORATION = _set("i span")
"""Elements that show icons, and the visual copy of a formula, where they have `aria-hidden`."""
_HEAD_TAGS = _set("head meta link base")
"""Elements that are not shown and have no text, so that no address leads to them."""
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
    reason: str = ""
    """Why its text is dropped."""
    link: str = ""
    """Address of the link around it."""
    footer: bool = False


Piece = tuple[str, int]
"""Text and its line."""


class Paragraph(NamedTuple):
    """A paragraph in one language, the line ends before it, and the headings and the anchor where it begins."""

    language: str
    letters: int
    pieces: list[Piece]
    gap: int
    main: bool
    heading: tuple[str, ...]
    anchor: str
    level: int
    """Level of the heading that it is; 0 for other text."""
    link: str
    """Address of the link that it is; empty for other text."""
    footer: bool

    @property
    def text(self) -> str:
        """Its text in one line."""
        return " ".join("".join(text for text, _ in self.pieces).split())


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
    hidden = tag not in _INLINE and _has_hidden(attributes)
    opened = (tag == "dialog" and "open" in attributes) or (tag == "template" and "shadowrootmode" in attributes)
    return hidden or (tag in _HIDDEN and not opened) or bool(_HIDING.search(attributes.get("style") or ""))


class Page(HTMLParser):
    """Collects a page's paragraphs."""

    def __init__(self, path: Path, notes: Notes, whole: bool, source: str) -> None:
        super().__init__()
        self._at = self._counted = 0
        self.leads_on = False
        shows = "aria-controls" in source or "-target" in source
        self._controlled = frozenset(_CONTROLLED.findall(source) if shows else ())
        self._footers, self._source = source.count("<footer"), source
        self._has_text = False
        """Whether a paragraph stands directly in the page."""
        self._linked, self._dropped, self._dropped_at = 0, "", 0
        self._link = ""
        self._path, self._notes, self._whole = path, notes, whole
        self._languages: dict[str, str] = {}
        """Value of a `lang` attribute → language tag, empty if it is not valid."""
        self._unclosed_tags = 0
        self.title = self.language = ""
        self.paragraphs: list[Paragraph] = []
        self._headings: list[tuple[int, str]] = []
        """Level and text of the headings above the current place."""
        self._level = 0
        """Level of the heading that is open, 0 without one."""
        self._anchor = self._first_anchor = ""
        self._main = False
        self._open = [_Element()]
        self._count = Counter[str]()
        self._pieces: list[Piece] = []
        self._letters: dict[str, int] = {}
        self._shown = False
        """Whether the open paragraph has text that is not hidden."""
        self._gap = 0
        self._ended = False

    @cached_property
    def _wrapped(self) -> bool:
        return bool(_WRAPPER.search(self._source))

    def updatepos(self, i: int, j: int) -> int:
        """Note an offset, whose line is counted when it is asked for: that saves a tenth of the time."""
        self._at = j
        return j

    @property
    def _line(self) -> int:
        self.lineno += self.rawdata.count("\n", self._counted, self._at)
        self._counted = self._at
        return self.lineno

    def parse_starttag(self, i: int) -> int:
        """Parse the start tag at an offset and return its end, or -1 if it has none.

        `DataError` if many tags have none: the parser searches the whole rest of the page for each end.
        """
        if (end := self._read_tokens(i)) > i:
            return end
        end = super().parse_starttag(i)
        self._unclosed_tags += end < 0
        if self._unclosed_tags > _MOST_UNCLOSED:
            raise DataError(
                f"{self._path}:{self._line}: more than {_MOST_UNCLOSED} tags have no end; a quote may be missing"
            )
        return end

    def parse_endtag(self, i: int) -> int:
        """Parse the end tag at an offset and return its end, or -1 if it has none."""
        return end if (end := self._read_tokens(i)) > i else super().parse_endtag(i)

    def _read_tokens(self, i: int) -> int:
        """Read plain tags and the texts behind them from an offset on; return where they end."""
        while not self.cdata_elem and (match := _TOKEN.match(self.rawdata, i)):
            ended, begun, attributes, text = match.groups()
            if ended:
                self.handle_endtag(ended.lower())
            elif begun.lower() in _OWN_CONTENT:
                break
            else:
                found = _ATTRIBUTE.findall(attributes) if attributes else ()
                self.handle_starttag(begun.lower(), [(name.lower(), value) for name, value in found])
            i = self._at = match.end() - len(text or "")
            if text:
                self.handle_data(text)
                i = self._at = match.end()
        return i

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, and end those that it ends."""
        while tag in _ENDED_BY.get(self._open[-1].tag, ()):
            self.handle_endtag(self._open[-1].tag)
        around, attributes = self._open[-1], dict(attrs)
        if not around.shown:
            self._start_dropped(tag, attributes, around.reason)
            return
        shows = self._controlled
        opened = bool(shows) and attributes.get("id") in shows and attributes.get("role") != "tabpanel"
        if not opened and _is_hidden(tag, attributes):
            self._start_dropped(tag, attributes, "hidden")
            return
        self._separate(tag)
        if not self._whole and (reason := self._find_boilerplate(tag, attributes)):
            self._start_dropped(tag, attributes, reason)
            return
        if tag == "meta":
            self._read_meta(attributes)
        if tag not in _HEAD_TAGS:
            self._has_text |= tag == "p" and around.tag in ("", "html", "body")
            self._anchor = attributes.get("id") or (attributes.get("name") if tag == "a" else "") or self._anchor
            if tag in _HEADINGS:
                self._level = int(tag[1])
                self._headings = [each for each in self._headings if each[0] < self._level]
        if tag not in _VOID:
            written = attributes.get("lang", attributes.get("xml:lang"))
            language = around.language if written is None else self._read_language(written)
            self.language = language if tag == "html" else self.language
            main = around.main or tag == "main" or attributes.get("role") == "main"
            link = (attributes.get("href") or "") if tag == "a" else around.link
            hidden = _has_hidden(attributes) and not opened
            if hidden:
                self._add(" ", self._line)  # The keys of two platforms are two words.
            exact = around.exact or tag in _EXACT
            footer = around.footer or tag == "footer"
            self._open.append(_Element(tag, language, True, exact, main, around.hidden or hidden, "", link, footer))
            self._count[tag] += 1

    def _start_dropped(self, tag: str, attributes: Mapping[str, str | None], reason: str) -> None:
        """Open an element that is not shown, or within one."""
        reason = "" if tag in _SILENT else reason
        if tag == "meta" and not self._count["noscript"]:  # there it leads browsers without scripts on
            self._read_meta(attributes)
        if reason and self._dropped:
            self._dropped += " "
        if tag not in _VOID:
            self._open.append(_Element(tag, shown=False, reason=reason))
            self._count[tag] += 1

    def _read_meta(self, attributes: Mapping[str, str | None]) -> None:
        content = attributes.get("content") or ""
        robots = (attributes.get("name") or "").lower() == "robots"
        refresh = (attributes.get("http-equiv") or "").lower() == "refresh"
        self.leads_on |= robots and not {"noindex", "none"}.isdisjoint(re.split(r"[\s,]+", content.lower()))
        self.leads_on |= refresh and bool(_LEADS_ON.match(content))

    def _find_boilerplate(self, tag: str, attributes: Mapping[str, str | None]) -> str:
        """Return why an element is no content but a site's navigation, search or footer; empty for content."""
        if tag in _DECORATION and attributes.get("aria-hidden") == "true":
            return "decoration"
        if tag not in _FURNITURE and "class" not in attributes and "role" not in attributes:
            return ""
        role, classes = attributes.get("role") or "", attributes.get("class") or ""
        if tag == "nav" or role in _FURNITURE_ROLES or not _FURNITURE_CLASSES.isdisjoint(classes.split()):
            return role or "navigation"
        around = self._open[-1].tag in ("", "html", "body")
        # A page has one footer; several in its parts belong to them.
        if tag == "footer" and not any(self._count[each] for each in _SECTIONS) and (self._footers == 1 or around):
            return "footer"
        if tag == "aside" and around and not _NOTE.search(f"{role} {classes}"):  # elsewhere it may be a note
            return "" if self._has_text and not self._wrapped else "aside"
        return ""

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those within it."""
        if not self._count[tag]:
            if tag in ("p", "br") and self._open[-1].shown:  # alone they show as a line end
                self._separate(tag)
            return
        ended = ""
        while ended != tag:
            ended = self._open[-1].tag
            if self._open[-1].reason and self._open[-2].shown:
                self._notes.drop(self._open[-1].reason, [(self._dropped, self._dropped_at)])
                self._dropped = ""
            if self._open[-1].shown:
                self._separate(ended)
                if ended in _HEADINGS:
                    self._level = 0
            self._open.pop()
            self._count[ended] -= 1

    def handle_comment(self, data: str) -> None:
        """End the page at a comment without an end, as browsers do."""
        if data.startswith(ENDLESS) and not self._ended:
            self._notes.add("not shown", f"{self._path}:{self._line}: {ENDLESS_COMMENT}")
            self._ended = True

    def handle_data(self, data: str) -> None:
        """Add text to the open paragraph."""
        here = self._open[-1]
        data = data.removesuffix(_END)
        if self._ended:
            return
        if here.tag == "title" and self._open[-2].shown:
            self.title = self.title or " ".join(data.split())
        elif here.reason:
            self._dropped_at = self._dropped_at if self._dropped else self._line
            self._dropped += data
        elif here.shown:
            for line, text in enumerate(_LINE.findall(data), self._line):
                self._add(text, line)

    def end(self) -> None:
        """End the page, with the elements that have no end."""
        while len(self._open) > 1:
            self.handle_endtag(self._open[-1].tag)
        self.end_paragraph(0)

    def end_paragraph(self, gap: int) -> None:
        """End the paragraph, with at least `gap` line ends before the next."""
        if self._shown:
            self._close_paragraph(self._pieces, self._letters)
            self._gap = 0
        if self._pieces:
            self._pieces, self._letters, self._shown, self._linked = [], {}, False, 0
        self._gap = max(self._gap, gap)

    def _close_paragraph(self, pieces: list[Piece], letters: Mapping[str, int]) -> None:
        while not pieces[-1][0].strip():
            pieces.pop()
        pieces[-1] = pieces[-1][0].rstrip(), pieces[-1][1]
        language, count = max(letters.items(), key=itemgetter(1))
        if self._level:
            self._add_heading(" ".join("".join(text for text, _ in pieces).split()))
        heading = tuple(text for _, text in self._headings)
        main, link = self._main, self._link if self._linked == sum(letters.values()) > 0 else ""
        level, anchor, footer = self._level, self._first_anchor, self._open[-1].footer
        found = Paragraph(language, count, pieces, self._gap, main, heading, anchor, level, link, footer)
        self.paragraphs.append(found)

    def _add_heading(self, text: str) -> None:
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
            self._add(" ", self._line)

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
            count = sum(map(str.isalnum, text))
            self._letters[here.language] = self._letters.get(here.language, 0) + count
            if here.link:
                self._linked += count
                self._link = here.link
            self._shown |= not (here.hidden or blank(text))

    def _read_language(self, written: str) -> str:
        if written not in self._languages:
            self._languages[written] = self._notes.read_language(written, f"{self._path}:{self._line}: lang")
        return self._languages[written]
