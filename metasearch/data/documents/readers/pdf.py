"""PDF pages, read with pypdf. A passage's line is the page on which it begins."""

import io
from collections.abc import Iterator
from pathlib import Path

from metasearch.config.extras import import_extra
from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.passage import Notes, Section
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import opened
from metasearch.errors import DataError

NO_TEXT = "pages without text, which may be scanned"


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text of all pages as one section."""
    pypdf = import_extra("pypdf", "documents", f"{path}: a PDF", DataError)
    with opened(path, lambda: "the beginning") as file:
        content = io.BytesIO(file.read())
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
    if parts:
        # A sentence can continue on the next page.
        yield Section("\n".join(parts), marks[0][1], title=" ".join(title.split()), marks=marks)
