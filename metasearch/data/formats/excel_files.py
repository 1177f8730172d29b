"""Workbooks of Excel and other spreadsheets: the rows of their first sheet, as texts."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

from metasearch.config.extras import import_extra
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import with_line_feeds
from metasearch.errors import DataError, first_line
from metasearch.io import near, require_file

EXCEL = ".xlsx"
log = logging.getLogger(__name__)


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
    # Some programs write a size of the sheet that is too small.
    sheet.reset_dimensions()
    for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = list(map(_text, values))
        if any(cells):
            yield f"{path}: sheet '{sheet.title}', row {number}", number, cells


def _text(value: object) -> str | None:
    """Return a cell as the text that a CSV has for it: a whole number without a point, a date as in ISO 8601."""
    if value is None or (isinstance(value, str) and blank(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return with_line_feeds(value if isinstance(value, str) else str(value))
