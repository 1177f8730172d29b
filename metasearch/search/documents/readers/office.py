"""PDF pages, read with PDFium, and DOCX, converted to HTML by mammoth.

The line of a passage is the page of a PDF, and the paragraph, list item or table row of a DOCX file, from 1.
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from metasearch.config.extras import import_extra
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import opened, suffix_of
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.documents.readers.html import html_sections
from metasearch.search.documents.readers.right_to_left import RIGHT_TO_LEFT, read_right_to_left

SUFFIXES = (".pdf", ".docx")
HOLDS = {".pdf": "parts", ".docx": "page"}

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
_NO_TITLE = re.compile(
    r"^microsoft (?:word|powerpoint|excel) - |^powerpoint"
    r"|\.(?:docx?|pptx?|xlsx?|odt|indd|qx[dp]|tex|dvi|ps|pdf|rtf|fm|pmd)$"
    r"|^(?:\(?anonymous\)?|untitled|unbenannt|sans titre|document|dokument|presentation|slide|layout)[ _-]*\d*$",
    re.I,
)
"""Titles that programs write: the name of the printed file, or of an empty document."""
_NUMBERS = re.compile(r"\d+")
_EDGE, _RUNNING, _LEAST_RUNNING = 2, 0.4, 4
"""Lines at each edge of a page that may be on others, too; share of the pages, and their number, from which they are
no text: left and right pages may have lines of their own."""
_LETTERS = 50
"""Letters of a page below which spaces are not counted."""


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text, without images."""
    read = _read_pdf if suffix_of(path) == ".pdf" else _read_docx
    with opened(path, lambda: "the beginning") as file:
        content = io.BytesIO(file.read())
    yield from read(content, path, notes, settings.keep_repeated)


def _read_pdf(content: io.BytesIO, path: Path, notes: Notes, keep: bool) -> list[Section]:
    """Return the text of all pages as one section, since a sentence can continue on the next page."""
    pdfium = import_extra("pypdfium2", "documents", f"{path}: a PDF", DataError)
    pages, glued = list[tuple[int, str]](), list[int]()
    try:
        with pdfium.PdfDocument(content) as document:
            title = _title(str(document.get_metadata_value("Title")))
            for number, page in enumerate(document, 1):
                text = _page_text(page)
                if blank(text):
                    notes.counts[NO_TEXT] += 1
                    continue
                if _lacks_spaces(text):
                    glued.append(number)
                pages.append((number, text))
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.raw.FPDF_ERR_PASSWORD:
            raise DataError(f"{path}: the file needs a password; remove it first") from None
        raise DataError(f"{path}: damaged PDF: {error}") from None
    if glued:
        more = f" and {len(glued) - 1:,} more pages" if len(glued) > 1 else ""
        notes.add("text without spaces", f"{path}: page {glued[0]}{more}: words can hardly be found there")
    texts = pages if keep else _without_running_lines(pages, notes)
    starts = accumulate((len(text) + 1 for _, text in texts), initial=0)
    marks = [(start, number) for start, (number, _) in zip(starts, texts, strict=False)]
    return [Section("\n".join(text for _, text in texts), title=title, marks=marks)] if texts else []


def _title(written: str) -> str:
    """Return the title in the metadata; empty for the name of a file and of an empty document."""
    title = " ".join(written.split())
    return "" if _NO_TITLE.search(title) else title


def _without_running_lines(pages: Sequence[tuple[int, str]], notes: Notes) -> list[tuple[int, str]]:
    """Return the texts of pages without the lines at their edges that many share, but for numbers."""
    lines = [text.split("\n") for _, text in pages]
    edges = [{_NUMBERS.sub("0", line).strip() for line in (*own[:_EDGE], *own[-_EDGE:])} for own in lines]
    counts = Counter(line for own in edges for line in own if line)
    running = {line for line, count in counts.items() if count >= max(_LEAST_RUNNING, _RUNNING * len(pages))}
    found = []
    for (number, text), own in zip(pages, lines, strict=True):
        start, end = 0, len(own)
        while start < min(_EDGE, end) and _NUMBERS.sub("0", own[start]).strip() in running:
            start += 1
        while end > max(len(own) - _EDGE, start) and _NUMBERS.sub("0", own[end - 1]).strip() in running:
            end -= 1
        if start == end:  # a page of such lines alone
            found.append((number, text))
            continue
        notes.drop("running line", ((line, number) for line in (*own[:start], *own[end:])))
        found.append((number, "\n".join(own[start:end])))
    return found


def _page_text(page: Any) -> str:
    shown = page.get_textpage()
    text = shown.get_text_bounded()
    if RIGHT_TO_LEFT.search(text):
        text = read_right_to_left(shown)
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


def _read_docx(content: io.BytesIO, path: Path, notes: Notes, keep: bool) -> Iterator[Section]:
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


_SHOWN_ANYWAY = ("rPr", "fldChar", "instrText")
"""Children of a hidden run that stay: its formatting, and marks of fields, which come in pairs."""
_PARTS = ("document", "footnotes", "endnotes")


def _without_hidden_text(content: io.BytesIO) -> io.BytesIO:
    """Return a DOCX file without the runs that are formatted as hidden (`w:vanish`), which mammoth reads.

    Raises errors of zipfile and of the XML parser.
    """
    with zipfile.ZipFile(content) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    hiding = {name for name, part in parts.items() if b"vanish" in part and name.rpartition("/")[2].startswith(_PARTS)}
    if not hiding:
        return content
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as new:
        for name, part in parts.items():
            new.writestr(name, _shown(part) if name in hiding else part)
    changed.seek(0)
    return changed


def _shown(part: bytes) -> bytes:
    root = ElementTree.fromstring(part)
    for run in root.findall(".//{*}r"):
        vanish = run.find("{*}rPr/{*}vanish")
        if vanish is not None and not {"0", "false", "off"} & {*vanish.attrib.values()}:
            for child in [each for each in run if each.tag.rpartition("}")[2] not in _SHOWN_ANYWAY]:
                run.remove(child)
    return ElementTree.tostring(root)
