"""JSON lines: an object a line, with the keys of `metasearch.data.documents.readers.table`."""

from collections.abc import Iterator
from pathlib import Path

from metasearch.data.documents.content import lines
from metasearch.data.documents.passage import Section
from metasearch.data.documents.problems import Notes
from metasearch.data.documents.readers.table import read_row
from metasearch.data.documents.settings import Settings
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import json_of
from metasearch.errors import DataError, nearest


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text of each object that has one; `DataError` if none has the key with the text."""
    missing, found = "", False
    for number, line in enumerate(lines(path), 1):
        if blank(line):
            continue
        try:
            row = _object(line, path, number)
        except DataError as error:
            notes.skip_row(str(error))
            continue
        if settings.column not in row:
            message = f"{path}:{number}: no '{settings.column}', which holds the text.{nearest(settings.column, row)}"
            missing = missing or message
            notes.skip_row(message)
            continue
        found = True
        section = read_row(row, f"{path}:{number}", settings, notes)
        if section is not None:
            # Line ends of the text are written as \n: all of it stands in one line.
            yield Section(section.text, number, section.language, section.title, marks=())
    if missing and not found:
        raise DataError(missing)


def _object(line: str, path: Path, number: int) -> dict[str, object]:
    # Without its end: of half an object, the parser would name the next line.
    row = json_of(line.rstrip("\n"), path, number)
    if not isinstance(row, dict):
        raise DataError(f"{path}:{number}: expected an object in braces, got {line.strip()[:40]}")
    return row
