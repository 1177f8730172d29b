"""Rows of named fields: CSV, TSV, JSON lines, Parquet and Arrow files. Each row becomes a section of its own.

A further column that a table has several times, as Jira exports labels, becomes a list.

The text is in the field `text`, or as `column` of the settings says; `title` stands before each of its passages, and
`language` is a tag such as `de`. Other fields stay with the passages, are returned with hits, and are filtered by.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from html import unescape
from itertools import takewhile
from pathlib import Path
from typing import Any
from uuid import UUID

from metasearch.data.formats.blank import blank, half_pair
from metasearch.data.formats.rows import Row, missing_column, read_rows
from metasearch.data.formats.text_files import suffix_of, with_line_feeds
from metasearch.errors import DataError
from metasearch.search.documents.chunking import OTHER_COLUMNS, Settings
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.documents.readers.html import html_sections

SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet", ".arrow", ".feather")
HOLDS = "rows"

BLANK = "rows without text, skipped"
ROUNDED = "decimals rounded to 64-bit floats"
AS_HTML = "rows of HTML, read as their text"
_HTML = re.compile(
    r"\A\s*<(p|div|ul|ol|h[1-6]|table|section|span|a|strong|b|em|blockquote)\b[^>]*>.*</\1\s*>|<br\s*/?>"
    r"|</(?:p|li|div|h[1-6]|td|strong|em|span|a|b)\s*>.*</(?:p|li|div|h[1-6]|td|strong|em|span|a|b)\s*>",
    re.S | re.I,
)
"""Text with elements of HTML."""
_LONGEST = 2**14
"""Bytes of a further field, which each passage of its row keeps."""
_COUNTED = 20
"""Notes of a document above which a dropped field is not named: objects may have any number of fields."""


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text in each row; `DataError` if no row has the text column, or none is UTF-8."""
    column, is_table = settings.column, suffix_of(path) in (".csv", ".tsv")
    reasons: list[str] = []
    count = 0

    def damaged(place: str, reason: str) -> None:
        reasons.append(f"{place}: {reason}")
        notes.skip_row(reasons[-1])

    rows = read_rows(path, {column: column}, damaged=damaged, single=(column, *OTHER_COLUMNS))
    for row in _with_option(rows, column):
        count += 1
        # Line ends within JSON are written as \n, so a passage has the line of its row.
        values, line, marks = row.values, row.line, None if is_table else ()
        if column not in values:
            notes.skip_row(f"{missing_column(row.place, column, values)} --column names the column with the text")
            continue
        if is_table:
            before = takewhile(lambda name: name != column, values)
            line += sum("".join(values[name] or "").count("\n") for name in before)
        try:
            text, title, language = (_read_text(values, name) for name in (column, "title", "language"))
        except ValueError as error:
            notes.skip_row(f"{row.place}: {error}")
            continue
        if blank(text):
            notes.counts[BLANK] += 1
            continue
        if _HTML.search(text):
            notes.counts[AS_HTML] += 1
            text = "\n\n".join(each.text for each in html_sections(text, path, notes))
            title, marks = unescape(title), ()
        tag = notes.read_language(language, f"{row.place}: language")
        title = "" if blank(title) else " ".join(title.split())
        yield Section(text, line, tag, title, marks, fields=_further_fields(values, settings, notes))
    if reasons and not count and all("not UTF-8" in reason for reason in reasons):
        raise DataError(reasons[0])


def _with_option(rows: Iterator[Row], column: str) -> Iterator[Row]:
    try:
        yield from rows
    except DataError as error:
        option = " Name yours: --column COLUMN" * (f"no column '{column}'" in str(error))
        raise DataError(f"{error}{option}") from None


def _read_text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, got {str(value)[:40]}")
    if half := half_pair(value):
        raise ValueError(f"{name}: expected a text, got {half}")
    return with_line_feeds(value)


def _further_fields(row: Mapping[str, Any], settings: Settings, notes: Notes) -> dict[str, Any]:
    """Return the fields that do not belong to the text, as JSON holds them; the notes count those that it cannot."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in (settings.column, *OTHER_COLUMNS) or value is None or value != value:  # NaN: no value
            continue
        try:
            plain = partial(_plain_value, notes)
            content = json.dumps({name: value}, ensure_ascii=False, allow_nan=False, default=plain)
            fits = len(content.encode()) <= _LONGEST
        except (TypeError, ValueError, RecursionError):
            fits = False
        if fits:
            found |= json.loads(content)
        else:
            shown = f"'{name[:40]}'" if len(notes.counts) < _COUNTED else "of other names"
            notes.counts[f"fields {shown} over {_LONGEST:,} bytes or no JSON, dropped"] += 1
    return found


def _plain_value(notes: Notes, value: object) -> str | float:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        number = float(value)
        if value not in (Decimal(number), Decimal(repr(number))):
            notes.counts[ROUNDED] += 1
        return number
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError
