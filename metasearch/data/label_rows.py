"""Reads rows of labels: a query, and a document as a text or as the name of a page.

A row with several documents becomes one label for each. Values of a column `page`, `url` or `path` are names of pages,
and so are paths and addresses in the column `document`: `metasearch tune --documents` joins them to their pages.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from metasearch.config.languages import is_known, parse_tag
from metasearch.data.addresses import canonical
from metasearch.data.formats.blank import blank
from metasearch.data.formats.documents import is_address, is_path
from metasearch.data.formats.excel_files import LinkedText
from metasearch.data.formats.rows import Row, missing_column, read_rows
from metasearch.data.formats.text_files import suffix_of, text_lines
from metasearch.data.readers import Text, checked
from metasearch.errors import DataError, require_known
from metasearch.io import near

_DOCUMENTS = ("document", "page", "pages", "url", "path")
"""Columns with documents, of which the first is read; all but `document` have names of pages."""
COLUMNS = (
    "query",
    *_DOCUMENTS,
    "language",
    "query_language",
    "document_language",
    "relevance",
    "clicks",
    "id",
    "group",
)
"""Names of values that are read, whatever their columns are called."""
_COUNTED = ("query", "language", "query_language", "document_language", "clicks", "id", "group")
"""Values in which rows of a click log are equal, beside the page."""
_DECIMAL = re.compile(r"0,\d+|\d+,\d{1,2}")
_THOUSANDS = re.compile(r"\d{1,3}(?:[,\s'’]\d{3})+|[1-9]\d{0,2}(?:\.\d{3}){2,}")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}\.\d{3}")
"""A thousand in some languages, and a decimal in others."""
_COUNTS = re.compile(r"(nb_|unique |total )?(clicks?|click.?counts?|counts?|visits|page ?views|sessions)", re.I)
"""Columns of logs with the number of clicks; the first is read where there is no column `clicks`."""


def _read_tag(value: Any) -> str:
    tag = "" if value is None or blank(str(value)) else parse_tag(str(value))
    return tag if is_known(tag) else ""


def _read_number(value: Any) -> Any:
    """Return a number with a decimal comma with a point; `1,000` may be a thousand, and stays."""
    comma = isinstance(value, str) and _DECIMAL.fullmatch(value.strip())
    return value.replace(",", ".") if comma else value


def _read_count(value: Any) -> Any:
    """Return a whole number without marks of thousands; `ValueError` for `1.234`."""
    if isinstance(value, str) and _UNCLEAR.fullmatch(value.strip()):
        raise ValueError(f"{value} may be {value.replace('.', '')}: write it without a point")
    thousands = isinstance(value, str) and _THOUSANDS.fullmatch(value.strip())
    return re.sub(r"[^\d]", "", value) if thousands else 0 if value is None else value


_Tag = Annotated[str, BeforeValidator(_read_tag)]
_Text = Annotated[Text, BeforeValidator(lambda value: "" if value is None else value)]
_Name = Annotated[str, BeforeValidator(lambda value: "" if value is None else str(value).strip())]


class Label(BaseModel):
    """A query and one document; the languages are empty until they are detected.

    `named` says that the document is the name of a page: a path, an address, or the id of a row. `clicked` says that
    the relevance is a number of clicks.
    """

    place: str
    named: bool = False
    query: _Text
    document: _Text
    language: _Tag = ""
    query_language: _Tag = ""
    document_language: _Tag = ""
    relevance: Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_read_number)] = 1.0
    clicks: Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_read_count)] = 1.0
    clicked: bool = False
    id: _Name = ""
    group: _Name = ""


def read_labels(rows: Any, columns: Mapping[str, str], named: bool, name: str) -> tuple[list[Label], list[str]]:
    """Return the labels in rows with query and document, and notes on what was not read.

    Args:
        rows: as `metasearch.data.formats.rows.read_rows` takes them.
        columns: name of a value → its column.
        named: whether documents may be names of pages.
        name: of the rows, for messages.

    Raises:
        DataError: a row or a column is missing or wrong, or most documents are names and may not be.
    """
    for column in columns:
        require_known("column", column, COLUMNS)
    labels, ignored, empty, clicks = list[Label](), dict[str, None](), list[str](), _Clicks()
    header, column, count = tuple[str, ...](), "", ""
    for row in read_rows(rows, columns, single=(*COLUMNS, *columns.values())):
        if header != (header := tuple(row.values)):
            column = _document_column(row, columns)
            count = _count_column(header) if named and column not in ("", "document") else ""
            read = {*COLUMNS, count} - ({*_DOCUMENTS} - {column})
            ignored |= {each: None for each in header if each not in read}
        if count:
            row = Row(row.place, row.line, {("clicks" if each == count else each): row.values[each] for each in header})
        if not (named and clicks.repeats(row, column)):
            found = _labels_of(row, column, columns, empty)
            labels += filter(clicks.is_new, found) if named else found
    if not labels:
        nothing = f"{clicks.none[0]}: no row has clicks above 0" if clicks.none else f"{name}: no rows"
        raise DataError(empty[0] if empty and not clicks.none else nothing)
    notes = [f"columns that are not read: {', '.join(ignored)}"] if ignored else []
    if empty:
        notes.append(f"skipped rows without a text: {len(empty)}, the first: {empty[0]}")
    if clicks.none:
        notes.append(f"pages without a click, which are no labels: {len(clicks.none)}, the first in {clicks.none[0]}")
    if not named:
        _refuse_names(labels, notes)
    return labels, notes


def read_queries(rows: Any, columns: Mapping[str, str]) -> list[str] | None:
    """Return the distinct queries in rows without documents, in their order; None where rows have documents.

    A text file has a query a line. Other rows are as for `read_labels`, with the column `query` alone or beside others.

    Raises:
        DataError: a query is no text, or there is no column with queries.
    """
    if isinstance(rows, str | Path) and suffix_of(Path(rows)) == ".txt":
        if not Path(rows).is_file():
            raise DataError(f"{rows}: no such file{near(Path(rows))}")
        return list(dict.fromkeys(text.strip() for _, text in text_lines(Path(rows)) if not blank(text)))
    found: dict[str, None] = {}
    for row in read_rows(rows, columns):
        if _document_column(row, columns):
            return None
        if "query" not in row.values:
            missing = missing_column(row.place, columns.get("query", "query"), row.values)
            raise DataError(f"{missing} Name yours: --columns query=COLUMN (columns={{...}} in Python)")
        query = row.values["query"]
        if not isinstance(query, str):
            raise DataError(f"{row.place}: query: expected a text, got {str(query)[:40]}")
        if not blank(query):
            found[query.strip()] = None
    return list(found)


def _document_column(row: Row, columns: Mapping[str, str]) -> str:
    """Return the column with the documents; empty if there is none. One that was asked for comes first."""
    return next((name for name in (*columns, *_DOCUMENTS) if name in _DOCUMENTS and name in row.values), "")


def _labels_of(row: Row, column: str, columns: Mapping[str, str], empty: list[str]) -> Iterator[Label]:
    """Yield a label for each document in a column of a row; note a row that lacks one, or the query."""
    for name, known in (("query", "query" in row.values), ("document", bool(column))):
        if not known:
            missing = missing_column(row.place, columns.get(name, name), row.values)
            pages = ", or --columns page=COLUMN for paths and addresses" if name == "document" else ""
            raise DataError(f"{missing} Name yours: --columns {name}=COLUMN{pages} (columns={{...}} in Python)")
    query, documents = row.values["query"], row.values[column]
    several = list(documents) if isinstance(documents, list | tuple) else [documents]
    if lacking := "query" if _is_empty(query) else column if not several or any(map(_is_empty, several)) else "":
        empty.append(f"{row.place}: {lacking}: expected a text, got nothing")
        return
    for document in several:
        if column != "document" and isinstance(document, int):  # the id of a row
            document = str(document)
        named = column != "document" or (isinstance(document, str) and (is_address(document) or is_path(document)))
        if named and isinstance(document, str):
            document = _name_of(document)
        values = {**row.values, "document": document, "place": row.place, "named": named}
        yield checked(Label, values, row.place)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(blank(value)))


def _name_of(document: str) -> str:
    """Return the address behind a text, or the text, in canonical form."""
    return canonical(document.link if isinstance(document, LinkedText) else document)


def _refuse_names(labels: Sequence[Label], notes: list[str]) -> None:
    """Raise `DataError` if most documents are names of pages; note a few, which are taken as texts."""
    names = [label for label in labels if label.named]
    if 2 * len(names) > len(labels):
        first = names[0]
        what = "an address" if is_address(first.document) else "a path" if is_path(first.document) else "a page's name"
        raise DataError(
            f"{first.place}: document '{first.document[:80]}' is {what}; with --documents FOLDER it is joined to its "
            "page (documents=... of metasearch.tune in Python)"
        )
    if names:
        notes.append(
            f"documents that are a name of a page, taken as texts: {len(names)}, the first in {names[0].place}"
        )
    for label in names:
        label.named = False


# Rows of a click log.


def _count_column(header: Sequence[str]) -> str:
    """Return the column with the number of clicks; empty if there is none, or a relevance."""
    return "" if {"relevance", "clicks"} & {*header} else next(filter(_COUNTS.fullmatch, header), "")


class _Clicks:
    """Adds the clicks of equal rows; a row with a relevance is a judgement, which is not added.

    Attributes:
        none: places of rows with 0 clicks.
    """

    def __init__(self) -> None:
        self.none: list[str] = []
        self._labels: dict[tuple[str, ...], Label] = {}
        self._rows: dict[tuple[str, ...], tuple[Label, float]] = {}
        """Values of a row → its label and its clicks."""
        self._row: tuple[str, ...] = ()

    def repeats(self, row: Row, column: str) -> bool:
        """Count a row that equals another one, which need not be checked again; return whether it does."""
        values, self._row = row.values, ()
        if "relevance" not in values and isinstance(document := values.get(column), str):
            self._row = (_name_of(document), *map(str, map(values.get, _COUNTED)))
        if not (known := self._rows.get(self._row)):
            return False
        known[0].relevance += known[1]
        return True

    def is_new(self, label: Label) -> bool:
        """Count the clicks of a label, as the relevance of the first that equals it; return whether it is the first."""
        if not label.named or "relevance" in label.model_fields_set:
            return True
        if not label.clicks:
            self.none.append(label.place)
            return False
        pair = label.id, label.query_language or label.language, label.query, label.document
        first = self._labels.setdefault(pair, label)
        first.relevance = label.clicks + (first.relevance if first.clicked else 0)
        if self._row:
            self._rows[self._row] = first, label.clicks
        new, first.clicked = not first.clicked, True
        return new
