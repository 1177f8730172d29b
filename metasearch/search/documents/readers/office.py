"""PDF pages, read with PDFium, and DOCX, converted to HTML by mammoth.

The line of a passage is the page of a PDF, and the paragraph, list item or table row of a DOCX file, from 1.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import opened, suffix_of
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.documents.readers.html import html_sections
from metasearch.search.documents.word_hidden_text import without_hidden_text

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
        found = mammoth.convert_to_html(without_hidden_text(content), convert_image=without_images)
    # Damaged files raise errors of many types: of zipfile, of the XML parser, and of missing parts.
    except Exception as error:
        raise DataError(f"{path}: damaged DOCX file: {type(error).__name__}: {error}") from error
    for message in found.messages:
        if element := _NOT_READ.search(message.message):
            notes.add("not read", f"{path}: text in elements '{element[1]}'")
    return html_sections(_BLOCK.sub(r"\g<0>\n", _ID.sub("", found.value)), path, notes)
