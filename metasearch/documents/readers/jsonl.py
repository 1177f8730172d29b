"""JSON lines: an object a line, with the keys of `metasearch.documents.rows`."""

from collections.abc import Iterator
from pathlib import Path

from metasearch.documents.content import lines
from metasearch.documents.cutting import Notes
from metasearch.documents.rows import section_of
from metasearch.documents.section import Section
from metasearch.documents.settings import Settings
from metasearch.errors import DataError
from metasearch.formats.blank import blank
from metasearch.formats.text_files import json_of


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text of each object that has one."""
    for number, line in enumerate(lines(path), 1):
        if blank(line):
            continue
        row = json_of(line, path, number)
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: expected an object in braces, got {line.strip()[:40]}")
        section = section_of(row, f"{path}:{number}", settings, notes)
        if section is not None:
            # Line ends of the text are written as \n: all of it stands in one line.
            yield Section(section.text, number, section.language, section.title, marks=())
