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

from metasearch.documents.problems import Notes
from metasearch.documents.section import Section
from metasearch.documents.settings import OTHER_COLUMNS, Settings
from metasearch.formats.blank import blank
from metasearch.formats.text_files import with_line_feeds
from metasearch.spec.languages import parse_tag

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
