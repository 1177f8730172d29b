"""DOCX: turned into HTML by mammoth. The line of a passage is the paragraph, list item or table row, from 1."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

from metasearch.config.extras import import_extra
from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.passage import Notes, Section
from metasearch.data.documents.readers.html import html_sections
from metasearch.data.formats.text_files import opened
from metasearch.errors import DataError

_BLOCK = re.compile(r"</(?:p|h[1-6]|li|tr)>")


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield a file's text, without images."""
    mammoth = import_extra("mammoth", "documents", f"{path}: a DOCX file", DataError)
    with opened(path, lambda: "the beginning") as file:
        content = io.BytesIO(file.read())
    try:
        html = mammoth.convert_to_html(
            content, convert_image=mammoth.images.img_element(lambda image: {"src": ""})
        ).value
    # Damaged files raise errors of many types: of zipfile, of the XML parser, and of missing parts.
    except Exception as error:
        raise DataError(f"{path}: damaged DOCX file: {type(error).__name__}: {error}") from error
    yield from html_sections(_BLOCK.sub(r"\g<0>\n", html), path, notes)
