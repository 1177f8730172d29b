"""Workbooks of Excel and other spreadsheets: the rows of their first sheet, as texts.

A merged cell has its value in each of its rows. A text that is a link has the address behind it.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError, iterparse
from zipfile import BadZipFile

from metasearch.config.extras import import_extra
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import with_line_feeds
from metasearch.errors import DataError, first_line
from metasearch.io import near, require_file

EXCEL = ".xlsx"
_LINK = re.compile(r'\s*HYPERLINK\(\s*"([^"]+)"', re.I)
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
Cell = tuple[int, int]
"""Row and column, from 1."""

log = logging.getLogger(__name__)


class LinkedText(str):
    """The text of a cell that is a link."""

    link: str


def read_sheet(path: Path) -> Iterator[tuple[str, int, list[str | None]]]:
    """Yield place, number and cells of each row of the first sheet that has any; a blank cell is None.

    Cells of a formula have the value that was last computed. Other sheets are not read, which a line says.

    Raises:
        DataError: the file is no workbook, or openpyxl is missing.
    """
    excel = import_extra("openpyxl", "excel", f"{path}", DataError)
    try:
        require_file(path)
        with closing(excel.load_workbook(path, read_only=True, data_only=True)) as book:
            filled = False
            for number, sheet in enumerate(book.worksheets, 1):
                for place, row, cells in _rows(path, sheet):
                    filled = True
                    yield place, row, cells
                if filled:
                    if others := book.sheetnames[number:]:
                        log.info("%s: sheets that are not read: %s", path, ", ".join(others))
                    return
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}{near(path)}") from None
    except (BadZipFile, KeyError, ValueError, ParseError, excel.utils.exceptions.InvalidFileException) as error:
        raise DataError(f"{path}: damaged, or no workbook: {first_line(error)}") from None


def _rows(path: Path, sheet: Any) -> Iterator[tuple[str, int, list[str | None]]]:
    links, merged = _read_marks(sheet)
    held: dict[int, tuple[int, str | None]] = {}
    # Some programs write a size of the sheet that is too small.
    sheet.reset_dimensions()
    for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = [_linked(_text(value), links.get((number, i))) for i, value in enumerate(values, 1)]
        filled = any(cells)
        for column, (last, text) in held.items():
            if number <= last:
                cells += [None] * (column - len(cells))
                cells[column - 1] = text
        held |= {i: (merged[number, i], text) for i, text in enumerate(cells, 1) if (number, i) in merged}
        if filled:
            yield f"{path}: sheet '{sheet.title}', row {number}", number, cells


def _read_marks(sheet: Any) -> tuple[dict[Cell, str], dict[Cell, int]]:
    """Return the addresses behind cells, and the last row of each merged cell by its first row and column."""
    relationship = import_extra("openpyxl.packaging.relationship", "excel", sheet.title, DataError)
    range_boundaries = import_extra("openpyxl.utils", "excel", sheet.title, DataError).range_boundaries
    archive, relations = sheet.parent._archive, relationship.get_rels_path(sheet._worksheet_path)
    targets: Any = relationship.get_dependents(archive, relations) if relations in archive.namelist() else {}
    links, merged = dict[Cell, str](), dict[Cell, int]()
    with sheet._get_source() as source:
        for _, node in iterparse(source):
            tag = node.tag.rpartition("}")[2]
            if tag == "mergeCell":
                left, top, _, bottom = range_boundaries(node.get("ref"))
                merged[top, left] = bottom
            elif tag == "hyperlink" and (key := node.get(_RELATION)):
                left, top, right, bottom = range_boundaries(node.get("ref"))
                links |= dict.fromkeys(product(range(top, bottom + 1), range(left, right + 1)), targets.get(key).target)
            elif tag == "c" and (formula := _LINK.match("".join(each.text or "" for each in node[:1]))):
                left, top, _, _ = range_boundaries(node.get("r"))
                links[top, left] = formula[1]
            elif tag == "row":
                node.clear()
    return links, merged


def _linked(text: str | None, link: str | None) -> str | None:
    if text is not None and link:
        text = LinkedText(text)
        text.link = link
    return text


def _text(value: object) -> str | None:
    """Return a cell as the text that a CSV has for it: a whole number without a point, a date as in ISO 8601."""
    if value is None or (isinstance(value, str) and blank(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return with_line_feeds(value if isinstance(value, str) else str(value))
