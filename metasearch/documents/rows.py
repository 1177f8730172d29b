"""A row of named fields becomes a section of its own.

| field | what it is |
|---|---|
| `text`, or as `column` of the settings says | the text |
| `title` | stands before each passage of the text |
| `language` | a tag such as `de` |
| `id` | not read: a passage is found by file and line |

Further fields are not read, either, which the notes count.
"""

from collections.abc import Mapping

from metasearch.documents.cutting import Notes
from metasearch.documents.section import Section
from metasearch.documents.settings import OTHER_COLUMNS, Settings
from metasearch.errors import DataError, nearest
from metasearch.formats.blank import blank
from metasearch.formats.text_files import with_line_feeds
from metasearch.spec.languages import parse_tag

BLANK = "rows without text, left out"
_MOST = 20
"""Fields that are counted each by itself; objects may name any number."""


def section_of(row: Mapping[str, object], where: str, settings: Settings, notes: Notes) -> Section | None:
    """Return the section of a row; None where it has no text.

    Args:
        row: its fields; None is that of a missing one.
        where: file and line, for errors.
        settings: name the field with the text.
        notes: counts rows without text, and fields that are not read.

    Raises:
        DataError: the field with the text is missing, a field is no text, or the language is no tag.
    """
    if settings.column not in row:
        raise DataError(f"{where}: no '{settings.column}', which holds the text.{nearest(settings.column, row)}")
    for name in row:
        if name in (settings.column, *OTHER_COLUMNS):
            continue
        note = f"rows with '{name[:40]}', which is not read"
        notes[note if note in notes or len(notes) < _MOST else "rows with other fields, which are not read"] += 1
    text, title, language = (_field(row, name, where) for name in (settings.column, "title", "language"))
    if blank(text):
        notes[BLANK] += 1
        return None
    try:
        tag = "" if blank(language) else parse_tag(language)
    except ValueError as error:
        raise DataError(f"{where}: language: {error}") from None
    return Section(text, language=tag, title="" if blank(title) else " ".join(title.split()))


def _field(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: {name}: expected a text, got {str(value)[:40]}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: {name}: half a character, \\u{ord(value[error.start]):04x}") from None
    return with_line_feeds(value)
