"""Tables with a header: CSV, with quotes, and TSV, without; and the named fields of a row, which JSON lines share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from metasearch.config.languages import parse_tag
from metasearch.data.documents.content import lines
from metasearch.data.documents.passage import Section
from metasearch.data.documents.problems import Notes
from metasearch.data.documents.settings import OTHER_COLUMNS, Settings
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import column_names, rows_of, suffix_of, with_line_feeds
from metasearch.errors import DataError, nearest

# A row of named fields becomes a section of its own.
#
# | field | what it is |
# |---|---|
# | `text`, or as `column` of the settings says | the text |
# | `title` | stands before each passage of the text |
# | `language` | a tag such as `de` |
# | `id` | not read: a passage is found by file and line |
#
# Further fields are not read, either, which the notes count.

BLANK = "rows without text, left out"
_MOST = 20
"""Fields that are counted each by itself; objects may name any number."""


def read_row(row: Mapping[str, object], where: str, settings: Settings, notes: Notes) -> Section | None:
    """Return the section of a row; None if it has no text, or cannot be read, which the notes say.

    Args:
        row: its fields; None is that of a missing one.
        where: file and line.
        settings: name the field with the text.
        notes: of the document.
    """
    for name in row:
        if name in (settings.column, *OTHER_COLUMNS):
            continue
        note = f"rows with '{name[:40]}', which is not read"
        known = note in notes.counts or len(notes.counts) < _MOST
        notes.counts[note if known else "rows with other fields, which are not read"] += 1
    try:
        text, title, language = (_field(row, name) for name in (settings.column, "title", "language"))
    except ValueError as error:
        notes.skip_row(f"{where}: {error}")
        return None
    if blank(text):
        notes.counts[BLANK] += 1
        return None
    tag = ""
    try:
        tag = "" if blank(language) else parse_tag(language)
    except ValueError as error:
        notes.add("language ignored", f"{where}: language: {error}")
    return Section(text, language=tag, title="" if blank(title) else " ".join(title.split()))


def _field(row: Mapping[str, object], name: str) -> str:
    """Return a field; `ValueError` if it is no text."""
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, got {str(value)[:40]}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: half a character, \\u{ord(value[error.start]):04x}") from None
    return with_line_feeds(value)


# Tables with a header: CSV, with quotes, and TSV, without.


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text of each row that has one; `DataError` if there is no column with the text."""
    header: list[str] = []
    for first, cells in _rows(path):
        if not cells:
            continue
        if not header:
            header = column_names(cells, path, first)
            if settings.column not in header:
                raise DataError(
                    f"{path}:{first}: the header has no column '{settings.column}' with the text."
                    f"{nearest(settings.column, filter(None, header))}"
                )
            continue
        if len(cells) != len(header):
            notes.skip_row(f"{path}:{first}: expected {len(header)} columns, got {len(cells)}")
            continue
        # A column without a name, as spreadsheets leave at the end of rows, has nothing to be read for.
        row = {name: cell or None for name, cell in zip(header, cells, strict=True) if cell or name == settings.column}
        section = read_row(row, f"{path}:{first}", settings, notes)
        if section is not None:
            line = first + sum(cell.count("\n") for cell in cells[: header.index(settings.column)])
            yield Section(section.text, line, section.language, section.title)


def _rows(path: Path) -> Iterable[tuple[int, Sequence[str]]]:
    if suffix_of(path) == ".csv":
        return rows_of(lines(path), path)
    return ((n, line.rstrip("\n").split("\t") if not blank(line) else []) for n, line in enumerate(lines(path), 1))
