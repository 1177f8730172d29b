"""Reads text files, which may be packed: their lines, rows and values. Errors name file and line."""

import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from metasearch.data.formats import strict_json
from metasearch.data.formats.blank import blank
from metasearch.data.formats.compressed_files import damage, open_packed, unpacked
from metasearch.errors import DataError

LONGEST_ROW = 2**24
"""Characters that a line of rows, or a cell of a CSV, may have."""

# The limit is one of the whole process; by itself it is 131,072 characters, less than an article in one cell.
csv.field_size_limit(LONGEST_ROW)


def suffix_of(path: Path) -> str:
    """Return what a file's name ends in, without `.gz` or `.zst`: `.csv` for `pairs.csv.gz`."""
    return Path(unpacked(path.name)).suffix.lower()


def byte_lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines with their ends, without a byte-order mark; `.gz` and `.zst` are decompressed.

    Of a damaged packed file, the error names the last whole line.
    """
    number = 0
    with opened(path, lambda: f"line {number}") as file:
        for number, line in enumerate(file, 1):
            yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


@contextmanager
def opened(path: Path, reached: Callable[[], str]) -> Iterator[BinaryIO]:
    """Open a file to read, unpacked where its name ends in `.gz` or `.zst`."""
    try:
        with open_packed(path) as file:
            yield file
    except damage() as error:
        kind = "zstd" if path.suffix == ".zst" else "gzip"
        raise DataError(f"{path}: damaged {kind} file after {reached()}: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, with its end; raises as `text_of` does."""
    for number, line in enumerate(byte_lines(path), 1):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{number}: not UTF-8: byte {error.object[error.start]:#04x}") from None


def text_of(path: Path) -> str:
    """Return a file's text with its line ends; `DataError` where it cannot be read or is not UTF-8."""
    return "".join(line for _, line in text_lines(path))


def lines_of(path: Path) -> list[str]:
    """Return a file's lines without their ends, LF or CR LF; `DataError` where it has none."""
    # Not `splitlines`, which also cuts at marks such as U+2028 within a sentence.
    lines = [line.removesuffix("\n").removesuffix("\r") for _, line in text_lines(path)]
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines


def json_of(text: str, path: Path) -> Any:
    """Return the value of a file's JSON text; `DataError` where it is not JSON, or a key is duplicated in an object."""
    try:
        return strict_json.parse(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from None
    except strict_json.RepeatedKey as error:
        raise DataError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not readable JSON: {error}") from None


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield first line number and cells for each non-blank row in a CSV.

    `DataError` where it is not CSV.
    """
    # All lines first: of two faults, that the file is no UTF-8 explains the other.
    return rows_of([line for _, line in text_lines(path)], path)


def rows_of(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield rows as `csv_rows` does, from lines with their ends."""
    # The csv module wants lines that a lone CR ends, too; line ends within quoted cells are left to it.
    reader = csv.reader((part for line in lines for part in io.StringIO(line, newline="")), strict=True)
    first = 1
    try:
        for row in reader:
            yield first, row
            first = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{first}: not CSV: {error}") from None


def with_line_feeds(cell: str) -> str:
    """Return a text whose line breaks are line feeds: one within quotes is the same, whatever system wrote the file."""
    return cell.replace("\r\n", "\n").replace("\r", "\n")


def column_names(cells: Sequence[str], path: Path, line: int) -> list[str]:
    """Return the stripped names in a header; `DataError` for a duplicate."""
    names = [cell.strip() for cell in cells]
    # Columns without a name, as spreadsheets leave them at the end of a row, are all alike.
    counts = Counter(names)
    if twice := next((name for name in names if name and counts[name] > 1), ""):
        raise DataError(f"{path}:{line}: the header names the column '{twice}' twice")
    return names


def tsv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each line, cut at tabs, without quotes; a blank line has none."""
    for number, line in enumerate(lines_of(path), 1):
        yield number, line.split("\t") if line else []


def sentence_of(cell: str, path: Path, line: int) -> str:
    """Return a text stripped of white space at both ends; `DataError` where it is blank."""
    if held := blank(cell):
        raise DataError(f"{path}:{line}: expected a sentence, got {held}")
    return cell.strip()
