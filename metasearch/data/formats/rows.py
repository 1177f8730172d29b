"""Read rows of named values with their places: one reader for all row files and rows in memory.

| source | rows |
|---|---|
| `.csv`, `.tsv` | cells by the names in the header; a TSV has no quotes, a CSV commas, semicolons, tabs or bars |
| `.xlsx` | cells by the names in the header of the first sheet, with openpyxl |
| `.jsonl` | a JSON object a line |
| `.parquet`, `.arrow`, `.feather` | rows of the table, with pyarrow |
| folder | of a `datasets.Dataset` or of a `DatasetDict` with one split, as `save_to_disk` writes them, with pyarrow |
| folder | of shards of one table, such as `train-00000-of-00002.parquet`, in the order of their names |
| in memory | an iterable of mappings, such as dicts or a `datasets.Dataset`; a table of pandas, polars or pyarrow |

Text files may be packed: their names then end in `.gz`. They are UTF-8, or UTF-16 with a byte-order mark.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metasearch.data.formats.arrow_files import SUFFIXES as ARROW
from metasearch.data.formats.arrow_files import plain_columns, read_batches
from metasearch.data.formats.blank import blank
from metasearch.data.formats.excel_files import EXCEL, read_sheet
from metasearch.data.formats.text_files import (
    Damage,
    bare_lines,
    parse_json,
    read_json,
    refuse,
    require_readable,
    suffix_of,
    table_rows,
)
from metasearch.errors import DataError, nearest
from metasearch.io import near

Values = Mapping[str, Any]
Source = str | Path | Iterable[Values] | Any
"""A file, a folder, or rows in memory; `Any` is a table of an optional library."""

STATE = "state.json"
"""File in every folder that `datasets.Dataset.save_to_disk` writes."""
_SHOWN = 40
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", EXCEL, *ARROW)
SHARD = re.compile(r"-\d+-of-\d+(?=\.|$)")
"""What names of shards of one table differ in."""


@dataclass(frozen=True, slots=True)
class Row:
    """Named values, and where they stand.

    Attributes:
        place: for messages, such as `labels.csv:3`, `labels.parquet: row 3` or `row 3`.
        line: number of the first line, or of the row in a source without lines, from 1.
        values: column → value; a text in a CSV or TSV; None if missing, as a blank cell is.
    """

    place: str
    line: int
    values: Values


def read_rows(
    source: Source,
    columns: Mapping[str, str] | None = None,
    *,
    names: Sequence[str] = (),
    damaged: Damage = refuse,
    single: Collection[str] | None = None,
) -> Iterator[Row]:
    """Yield rows from a file, a folder or memory; see the table above.

    Args:
        source: path, or rows in memory.
        columns: name that a value gets → its column, such as `{"query": "question"}`; other columns keep theirs.
        names: names of the columns of a CSV or TSV without a header; a TSV may then be called `.txt`, too.
        damaged: called for each unreadable row, which is skipped; by default the first one is a `DataError`.
        single: columns that a table may not have twice; another repeated one becomes a list of its values, without
            missing ones. By default none may be repeated.

    Example:
        >>> [row.values for row in read_rows([{"question": "where?", "id": 1}], {"query": "question"})]
        [{'query': 'where?', 'id': 1}]
    """
    how = _How(dict(columns or {}), names, damaged, single)
    rows = _file_rows(Path(source), how) if isinstance(source, str | Path) else _memory_rows(source, how)
    yield from _renamed(rows, how.columns)


@dataclass(frozen=True, slots=True)
class _How:
    """The arguments of `read_rows`."""

    columns: Mapping[str, str]
    names: Sequence[str]
    damaged: Damage
    single: Collection[str] | None

    def require_single(self, place: str, names: Sequence[str]) -> None:
        """Raise `DataError` for a repeated column that must be single."""
        # Columns without a name, as spreadsheets leave them at the end of a row, are all alike.
        for name, count in Counter(filter(None, names)).items():
            if count > 1 and (self.single is None or name in self.single):
                raise DataError(f"{place}: the header names the column '{name}' twice; rename one, or remove it")


def missing_column(place: str, name: str, known: Iterable[str]) -> DataError:
    """Return the error for a missing column, with the nearest name."""
    return DataError(f"{place}: no column '{name}'.{nearest(name, filter(None, known))}")


def _renamed(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[Row]:
    """Yield rows with renamed columns; `DataError` if no row has one of them."""
    if not columns:
        yield from rows
        return
    new = {old: name for name, old in columns.items()}
    seen: dict[str, None] = {}
    first = ""
    for row in rows:
        first = first or row.place
        seen.update(dict.fromkeys(row.values))
        # A column that has a name which another one gets is hidden by it.
        kept = {new.get(old, old): value for old, value in row.values.items() if old in new or old not in columns}
        yield Row(row.place, row.line, kept)
    for name in columns.values():
        if seen and name not in seen:
            raise missing_column(first, name, seen)


def _file_rows(path: Path, how: _How) -> Iterator[Row]:
    kind = suffix_of(path)
    # pathlib raises an error for a name that is too long.
    if os.path.isdir(path) and kind not in (*_SUFFIXES, ".txt"):
        shards = _shards(path)
        if not shards:
            return _arrow_rows(path, data_files(_saved_table(path)), how)
        return (row for shard in shards for row in _file_rows(shard, how))
    if kind in (".csv", ".tsv") or (how.names and kind == ".txt"):
        return _table(path, how)
    if kind in (".jsonl", ".ndjson"):
        return _json_rows(path, how.damaged)
    if kind == EXCEL:
        return _sheet_rows(path, how)
    if kind in ARROW:
        return _arrow_rows(path, [path], how)
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file or folder{near(path)}")
    raise DataError(
        f"{path}: expected rows in .csv, .tsv, .jsonl (also as .gz), .xlsx, .parquet, .arrow, .feather or a "
        f"folder of datasets; got '{kind}'"
    )


def _shards(folder: Path) -> list[Path]:
    """Return the files in a folder that form one table; empty for a `save_to_disk` folder, or none.

    A hub data set has its tables in the folder `data`.
    """
    names = sorted(os.listdir(folder))
    if {"dataset_dict.json", STATE} & set(names):
        return []
    shards = [name for name in names if suffix_of(Path(name)) in _SUFFIXES]
    if not shards and os.path.isdir(folder / "data"):
        return _shards(folder / "data")
    for name in shards:
        require_readable(folder / name)
    tables = sorted({SHARD.sub("", name) for name in shards})
    if len(tables) > 1:
        raise DataError(f"{folder}: has several tables; name one of them: {', '.join(shards)}")
    return [folder / name for name in shards]


# Text files.


def _table(path: Path, how: _How) -> Iterator[Row]:
    """Yield cells by the names in the header; blank lines have none and are passed over."""
    header = list(how.names)

    def damaged(place: str, reason: str) -> None:
        # Nothing can be read without a header.
        (how.damaged if header else refuse)(place, reason)

    for line, cells in table_rows(path, damaged, headed=not how.names):
        if not cells:
            continue
        if not header:
            header = [cell.strip() for cell in cells]
            how.require_single(f"{path}:{line}", header)
            _check_header(f"{path}:{line}", header, how.columns)
        elif len(cells) != len(header):
            expected = f"{', '.join(how.names)};" if how.names else f"{len(header)} columns,"
            damaged(f"{path}:{line}", f"expected {expected} got {len(cells)}{' columns' if how.names else ''}")
        else:
            yield Row(f"{path}:{line}", line, _by_name(header, [cell if cell.strip() else None for cell in cells]))


def _by_name(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return values by name, as a list where a name is repeated; a column without a name has nothing to be read for."""
    found = {name: value for name, value in zip(names, values, strict=True) if name}
    if len(found) < len(names):
        for name, count in Counter(filter(None, names)).items():
            if count > 1:
                own = (value for other, value in zip(names, values, strict=True) if other == name)
                found[name] = [value for value in own if value is not None]
    return found


def _check_header(place: str, header: Sequence[str], columns: Mapping[str, str]) -> None:
    for name in columns.values():
        if name not in header:
            raise missing_column(place, name, header)


def _json_rows(path: Path, damaged: Damage) -> Iterator[Row]:
    for line, text in bare_lines(path, damaged):
        if blank(text):
            continue
        place = f"{path}:{line}"
        try:
            value = parse_json(text)
        except ValueError as error:
            damaged(place, str(error))
            continue
        if isinstance(value, dict):
            yield Row(place, line, value)
        else:
            damaged(place, f"expected an object in braces, got {text[:_SHOWN]}")


# The first sheet of a workbook.


def _sheet_rows(path: Path, how: _How) -> Iterator[Row]:
    """Yield cells by the names in the header; a row without any is passed over."""
    header: list[str] = []
    for place, number, cells in read_sheet(path):
        if not header:
            header = [(cell or "").strip() for cell in cells]
            how.require_single(place, header)
            _check_header(place, header, how.columns)
        elif any(cells[len(header) :]):
            how.damaged(place, f"expected {len(header)} columns, got {len(cells)}")
        else:
            values = [*cells[: len(header)], *[None] * (len(header) - len(cells))]
            yield Row(place, number, _by_name(header, values))


# Tables of Arrow: Parquet files, and folders that `datasets.Dataset.save_to_disk` wrote.


def _arrow_rows(path: Path, files: Iterable[Path], how: _How) -> Iterator[Row]:
    number = 0
    for file in files:
        for batch in read_batches(file):
            names = batch.schema.names
            how.require_single(f"{file}", names)
            for values in zip(*plain_columns(batch), strict=True):
                number += 1
                yield Row(f"{path}: row {number}", number, _by_name(names, values))


def _saved_table(folder: Path) -> Path:
    """Return the folder of the one table that `save_to_disk` wrote to a folder."""
    if (folder / "dataset_dict.json").is_file():
        splits = read_key(folder / "dataset_dict.json", "splits")
        if len(splits) != 1:
            raise DataError(f"{folder}: has the splits {', '.join(splits)}; name one of them: {folder / splits[0]}")
        folder /= splits[0]
    if not (folder / STATE).is_file():
        raise DataError(f"{folder}: no rows in this folder: neither a table nor a {STATE} from save_to_disk")
    return folder


def data_files(folder: Path) -> list[Path]:
    """Return the files of a saved table, in order; `DataError` if the list cannot be read."""
    found = read_key(folder / STATE, "_data_files")
    try:
        return [folder / each["filename"] for each in found]
    except (KeyError, TypeError):
        raise DataError(f"{folder / STATE}: expected a 'filename' for each of _data_files, got {found}") from None


def read_key(path: Path, key: str, kind: type = list) -> Any:
    """Return the value of a key in a JSON file of a table; `DataError` where it is missing or of another type."""
    content = read_json(path)
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, kind):
        raise DataError(f"{path}: expected JSON with a {kind.__name__} under the key '{key}'")
    return found


# In memory.


def _memory_rows(source: Any, how: _How) -> Iterator[Row]:
    if hasattr(source, "with_format"):  # a Dataset, whose rows are tables or arrays in other formats
        source = source.with_format(None)
    for name in ("to_pylist", "to_dicts"):  # of pyarrow, of polars
        source = getattr(source, name)() if hasattr(source, name) else source
    if hasattr(source, "iterrows"):  # a DataFrame, whose missing values are numbers that are none
        replace(how, single=None).require_single("rows", list(map(str, source.columns)))
        source = source.astype(object).where(source.notna(), None).to_dict("records")
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise DataError(
            f"rows: expected a list of dicts, a DataFrame, a Dataset or a path; got {type(source).__name__}"
        )
    for number, values in enumerate(source, 1):
        if isinstance(values, Mapping):
            yield Row(f"row {number}", number, values)
        else:
            how.damaged(f"row {number}", f"expected a dict, got {' '.join(repr(values).split())[:_SHOWN]}")
