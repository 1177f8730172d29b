"""PDF pages, read with pypdf, and DOCX, converted to HTML by mammoth.

The line of a passage is the page of a PDF, and the paragraph, list item or table row of a DOCX file, from 1.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path

from metasearch.config.extras import import_extra
from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.passage import Notes, Section
from metasearch.data.documents.readers.html import html_sections
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import opened, suffix_of
from metasearch.errors import DataError

NO_TEXT = "pages without text, which may be scanned"
_BLOCK = re.compile(r"</(?:p|h[1-6]|li|tr)>")


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text, without images."""
    read = _read_pdf if suffix_of(path) == ".pdf" else _read_docx
    with opened(path, lambda: "the beginning") as file:
        content = io.BytesIO(file.read())
    yield from read(content, path, notes)


def _read_pdf(content: io.BytesIO, path: Path, notes: Notes) -> list[Section]:
    """Return the text of all pages as one section, since a sentence can continue on the next page."""
    pypdf = import_extra("pypdf", "documents", f"{path}: a PDF", DataError)
    parts, marks, length = [], [], 0
    try:
        reader = pypdf.PdfReader(content)
        title = str((reader.metadata and reader.metadata.title) or "")
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text().strip().replace("\x00", "")
            if blank(text):
                notes.counts[NO_TEXT] += 1
                continue
            marks.append((length, number))
            parts.append(text)
            length += len(text) + 1
    except pypdf.errors.FileNotDecryptedError:
        raise DataError(f"{path}: the file needs a password; remove it first") from None
    # Damaged files raise errors of many types in pypdf, which promises none.
    except Exception as error:
        raise DataError(f"{path}: damaged PDF: {type(error).__name__}: {error}") from error
    return [Section("\n".join(parts), title=" ".join(title.split()), marks=marks)] if parts else []


def _read_docx(content: io.BytesIO, path: Path, notes: Notes) -> Iterator[Section]:
    mammoth = import_extra("mammoth", "documents", f"{path}: a DOCX file", DataError)
    without_images = mammoth.images.img_element(lambda image: {"src": ""})
    try:
        html = mammoth.convert_to_html(content, convert_image=without_images).value
    # Damaged files raise errors of many types: of zipfile, of the XML parser, and of missing parts.
    except Exception as error:
        raise DataError(f"{path}: damaged DOCX file: {type(error).__name__}: {error}") from error
    return html_sections(_BLOCK.sub(r"\g<0>\n", html), path, notes)
