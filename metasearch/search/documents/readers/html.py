"""HTML as displayed: without scripts, styles and hidden parts, and without a site's navigation and footers.

A paragraph has the `lang` of most of its letters, so a foreign word does not split a sentence.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from metasearch.data.formats.text_files import opened, with_line_feeds
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import HeadingMark, Notes, Section
from metasearch.search.documents.readers.html_page import Page, Paragraph, prepare_html
from metasearch.search.documents.readers.text import lines

SUFFIXES = (".html", ".htm")
HOLDS = "page"

_MOST = 2**24
"""Characters of a page, which is parsed as a whole."""
_CONTENTS = 2
"""Links to headings that are a table of contents, at least."""
_HEAD = 4096
"""Bytes of a page in which it states its encoding."""
_CHARSET = re.compile(rb"<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*[\"']?([\w.:-]+)", re.I)
_OTHER_NAMES = {"sjis": "cp932", "mac-cyrillic": "mac_cyrillic", "iso-8859-8-i": "iso-8859-8", "iso88591": "cp1252"}
_PREFIXES = re.compile(r"^(?:x-|cn-)+|^(?:windows|dos)-(?=\d{3}$)")
"""Names of encodings, and beginnings of names, that Python does not know."""
_BROWSERS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
}
"""Encoding → the one that browsers take for it (WHATWG Encoding Standard, 4.2)."""


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a page's text, one section per stretch in one language."""
    yield from html_sections(_read(path), path, notes, settings.keep_repeated)


def _read(path: Path) -> str:
    """Return a page in UTF-8, in UTF-16 with a byte-order mark, or in the encoding that it states."""
    with opened(path, lambda: "the beginning") as file:
        content = file.read(4 * _MOST + 1)
    if len(content) > 4 * _MOST:
        raise _too_long(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    # In ISO-2022-JP, characters are ASCII between escapes.
    if "\0" in text or "\x1b$" in text:
        stated = _stated_encoding(content, path)
        text = "".join(lines(path)) if stated is None else _decoded(content, path, stated)
    if len(text) > _MOST:
        raise _too_long(path)
    return with_line_feeds(text)


def _too_long(path: Path) -> DataError:
    return DataError(f"{path}: the file has more than {_MOST:,} characters, the limit for such documents")


def _stated_encoding(content: bytes, path: Path) -> str | None:
    """Return the encoding that the beginning of a page states, as browsers read it; None for UTF-8 and by default."""
    found = _CHARSET.search(content[:_HEAD])
    if found is None:
        return None
    stated = found[1].decode().lower()
    plain = _PREFIXES.sub("", stated)
    for written in (stated, plain, f"cp{plain}", _OTHER_NAMES.get(plain, "")):
        with suppress(LookupError):
            name = codecs.lookup(written).name
            if name.startswith("utf"):
                return None
            b" ".decode(name)  # a codec may be none of texts
            return _BROWSERS.get(name, name)
    raise DataError(f"{path}: the page states the encoding '{stated}', which is unknown; convert the file to UTF-8")


def _decoded(content: bytes, path: Path, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        says = f"not {encoding}, the encoding that the page states: byte {error.start:,}"
        raise DataError(f"{path}: {says}; convert the file to UTF-8") from None


def html_sections(source: str, path: Path, notes: Notes, whole: bool = True) -> Iterator[Section]:
    """Yield the text sections of HTML read from a file, with navigation and footers if `whole`."""
    page = Page(path, notes, whole, source)
    page.rawdata = prepare_html(source)
    page.close()
    page.end()
    if page.leads_on and not whole:
        notes.counts[Notes.NO_PAGE] += 1
        return
    found = page.paragraphs if whole else _content(page.paragraphs, notes)
    for language, paragraphs in _stretches(found):
        parts, marks, headings, size = [], [], list[HeadingMark](), 0
        for number, each in enumerate(paragraphs):
            pieces = [("\n" * each.gap, each.pieces[0][1])] * bool(number) + each.pieces
            kind = "link" if each.link and not each.level else "footer" if each.footer else ""
            headings.append(HeadingMark(size + each.gap * bool(number), each.heading, each.anchor, kind))
            for text, line in pieces:
                marks.append((size, line))
                parts.append(text)
                size += len(text)
        text, around = "".join(parts), page.language
        yield Section(text, language=language, title=page.title, marks=marks, headings=headings, around=around)


def _content(paragraphs: Sequence[Paragraph], notes: Notes) -> Sequence[Paragraph]:
    """Return the paragraphs in `main` if they have most letters, else all, without tables of contents.

    A heading of the first level in front of `main` belongs to it, with the text below.
    """
    inside = [each for each in paragraphs if each.main]
    if 2 * sum(each.letters for each in inside) > sum(each.letters for each in paragraphs):
        before = [] if any(each.level == 1 for each in inside) else paragraphs[: paragraphs.index(inside[0])]
        starts = [i for i, each in enumerate(before) if each.level == 1]
        inside = [*before[starts[-1] :], *inside] if starts else inside
        kept = set(map(id, inside))
        notes.drop("outside main", ((each.text, each.pieces[0][1]) for each in paragraphs if id(each) not in kept))
        paragraphs = inside
    headings = {_bare(each.text) for each in paragraphs if each.level}
    contents = [each for each in paragraphs if "#" in each.link and not each.level and _bare(each.text) in headings]
    if len(contents) < _CONTENTS:
        return paragraphs
    notes.drop("table of contents", ((each.text, each.pieces[0][1]) for each in contents))
    listed = set(map(id, contents))
    return [each for each in paragraphs if id(each) not in listed]


def _bare(text: str) -> str:
    """Return the letters of a heading, without the number before it."""
    return "".join(filter(str.isalpha, text.casefold()))


def _stretches(paragraphs: Sequence[Paragraph]) -> list[tuple[str, list[Paragraph]]]:
    found: list[tuple[str, list[Paragraph]]] = []
    for each in paragraphs:
        # Marks without a letter, such as a row of stars, are in the language of the text before.
        if found and (found[-1][0] == each.language or not each.letters):
            found[-1][1].append(each)
        else:
            found.append((each.language, [each]))
    return found
