"""PDF pages, read with PDFium, and DOCX, converted to HTML by mammoth.

The line of a passage is the page of a PDF, and the paragraph, list item or table row of a DOCX file, from 1.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from metasearch.config.extras import import_extra
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import opened, suffix_of
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.documents.readers.html import html_sections

SUFFIXES = (".pdf", ".docx")
HOLDS = "parts"

NO_TEXT = "pages without text, which may be scanned"
_ID = re.compile(r' id="[^"]*"')
"""A bookmark, to which no link leads from outside."""
_BLOCK = re.compile(r"</(?:p|h[1-6]|li|tr)>")
_NOT_READ = re.compile(r"element was ignored: (?:\w+:|\{.*\})(ruby|oMath\w*|dir|bdo|altChunk|customXml)$")
"""A message of mammoth about an element with text: others have none."""
_HYPHEN = re.compile(r"(?s)(.?)\x02(.?)")
_WORD = re.compile(r"[^\W\d_]+")
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\u1b00-\u1b7f\u3040-\u30ff\u3400-\u9fff\ua980-\ua9ff"
    "\uaa60-\uaa7f\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of Chinese, Japanese, Thai, Lao, Burmese, Khmer and other scripts that are written without spaces."""
_LETTERS = 50
"""Letters of a page below which spaces are not counted."""


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text, without images."""
    read = _read_pdf if suffix_of(path) == ".pdf" else _read_docx
    with opened(path, lambda: "the beginning") as file:
        content = io.BytesIO(file.read())
    yield from read(content, path, notes)


def _read_pdf(content: io.BytesIO, path: Path, notes: Notes) -> list[Section]:
    """Return the text of all pages as one section, since a sentence can continue on the next page."""
    pdfium = import_extra("pypdfium2", "documents", f"{path}: a PDF", DataError)
    parts, marks, length, glued = [], [], 0, []
    try:
        with pdfium.PdfDocument(content) as document:
            title = str(document.get_metadata_value("Title"))
            for number, page in enumerate(document, 1):
                text = _page_text(page)
                if blank(text):
                    notes.counts[NO_TEXT] += 1
                    continue
                if _lacks_spaces(text):
                    glued.append(number)
                marks.append((length, number))
                parts.append(text)
                length += len(text) + 1
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.raw.FPDF_ERR_PASSWORD:
            raise DataError(f"{path}: the file needs a password; remove it first") from None
        raise DataError(f"{path}: damaged PDF: {error}") from None
    if glued:
        more = f" and {len(glued) - 1:,} more pages" if len(glued) > 1 else ""
        notes.add("text without spaces", f"{path}: page {glued[0]}{more}: words can hardly be found there")
    return [Section("\n".join(parts), title=" ".join(title.split()), marks=marks)] if parts else []


def _page_text(page: Any) -> str:
    """Return the text within the edges of a page; the page is closed."""
    text = page.get_textpage().get_text_bounded()
    page.close()
    return _HYPHEN.sub(_join, text).replace("\r\n", "\n").replace("\x00", "").strip()


def _join(match: re.Match[str]) -> str:
    """Join what stands around U+0002, which PDFium writes for a hyphen at the end of a line.

    It most often parts a word; before a capital, as in `Debian-System`, it belongs to the word.
    """
    before, after = match.groups()
    parts = before.isalpha() and after.isalpha() and not after.isupper()
    return before + ("" if parts else "-") + after


def _lacks_spaces(text: str) -> bool:
    """Return whether one in ten letters is in a word of over 25 letters, in scripts with spaces between words.

    With spaces it is at most one in 25 letters, measured on 17 manuals in eight languages, German among them.
    """
    lengths = [len(word) for word in _WORD.findall(text) if not _WITHOUT_SPACES.search(word)]
    letters = sum(lengths)
    return letters >= _LETTERS and sum(size for size in lengths if size > 25) >= letters / 10


def _read_docx(content: io.BytesIO, path: Path, notes: Notes) -> Iterator[Section]:
    mammoth = import_extra("mammoth", "documents", f"{path}: a DOCX file", DataError)
    without_images = mammoth.images.img_element(lambda image: {"src": ""})
    try:
        found = mammoth.convert_to_html(_without_hidden_text(content), convert_image=without_images)
    # Damaged files raise errors of many types: of zipfile, of the XML parser, and of missing parts.
    except Exception as error:
        raise DataError(f"{path}: damaged DOCX file: {type(error).__name__}: {error}") from error
    for message in found.messages:
        if element := _NOT_READ.search(message.message):
            notes.add("not read", f"{path}: text in elements '{element[1]}'")
    return html_sections(_BLOCK.sub(r"\g<0>\n", _ID.sub("", found.value)), path, notes)


# Hidden text of a DOCX file is removed: runs with `w:vanish`, also by their styles, and hidden table rows.
#
# mammoth reads neither deleted revisions nor comments. Hiding is a toggle property (ECMA-376, part 1, 17.7.3): what a
# paragraph style hides, a character style shows again, and the run's own formatting overrides both.

_SHOWN_ANYWAY = ("rPr", "fldChar", "instrText")
"""Children of a run that stay: its formatting, and marks of fields, which come in pairs."""
_PARTS = ("document", "footnotes", "endnotes")


class _Styles(NamedTuple):
    """Which styles hide text; `paragraph` and `character` name the default ones."""

    hides: Mapping[str, bool]
    paragraph: str
    character: str
    everywhere: bool


def _without_hidden_text(content: io.BytesIO) -> io.BytesIO:
    """Return a DOCX file without its hidden text, the same one if there is none; raises errors of zipfile and XML."""
    with zipfile.ZipFile(content) as file:
        parts = {name: file.read(name) for name in file.namelist() if name.endswith(".xml")}
        if not any(b"vanish" in part or b":hidden" in part for part in parts.values()):
            return content
        styles = _read_styles(next((part for name, part in parts.items() if name.endswith("styles.xml")), b"<none/>"))
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as new:
            for name in file.namelist():
                part = parts[name] if name in parts else file.read(name)
                if any(mark in name.rpartition("/")[2] for mark in _PARTS):
                    part = _shown(part, styles)
                new.writestr(name, part)
    changed.seek(0)
    return changed


def _shown(part: bytes, styles: _Styles) -> bytes:
    root = ElementTree.fromstring(part)
    waiting = [(root, styles.paragraph)]
    while waiting:
        element, style = waiting.pop()
        for child in list(element):
            kind = _local(child)
            if kind == "tr" and _is_on(child.find("{*}trPr/{*}hidden")):
                element.remove(child)
                continue
            if kind == "r" and _is_hidden(child, style, styles):
                for each in [each for each in child if _local(each) not in _SHOWN_ANYWAY]:
                    child.remove(each)
            waiting.append((child, _style(child, "p", styles.paragraph) if kind == "p" else style))
    return ElementTree.tostring(root)


def _is_hidden(run: Element, paragraph: str, styles: _Styles) -> bool:
    own = run.find("{*}rPr/{*}vanish")
    if own is not None:
        return bool(_is_on(own))
    by_styles = styles.hides.get(paragraph, False) != styles.hides.get(_style(run, "r", styles.character), False)
    return styles.everywhere or by_styles


def _read_styles(part: bytes) -> _Styles:
    root = ElementTree.fromstring(part)
    own, above, defaults = {}, {}, {"paragraph": "", "character": ""}
    for style in root.findall("{*}style"):
        name, kind = _value(style, "styleId"), _value(style, "type")
        own[name] = _is_on(style.find("{*}rPr/{*}vanish"))
        above[name] = _value(style.find("{*}basedOn"), "val")
        if kind in defaults and _value(style, "default") in ("1", "true", "on"):
            defaults[kind] = name
    hides = {}
    for name in own:
        seen: set[str] = set()
        at = name
        while own.get(at) is None and at in own and at not in seen:
            seen.add(at)
            at = above[at]
        hides[name] = bool(own.get(at))
    everywhere = bool(_is_on(root.find("{*}docDefaults/{*}rPrDefault/{*}rPr/{*}vanish")))
    return _Styles(hides, defaults["paragraph"], defaults["character"], everywhere)


def _style(element: Element, kind: str, default: str) -> str:
    """Return the style of a paragraph (`p`) or run (`r`)."""
    return _value(element.find(f"{{*}}{kind}Pr/{{*}}{kind}Style"), "val") or default


def _is_on(element: Element | None) -> bool | None:
    """Return the value of a property; None without it."""
    return None if element is None else _value(element, "val") not in ("0", "false", "off")


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _value(element: Element | None, name: str) -> str:
    """Return an attribute in any namespace; empty if it is missing."""
    found = {} if element is None else element.attrib
    return next((value for key, value in found.items() if key.rpartition("}")[2] == name), "")
