"""Read rows of named values with their places: one reader for all row files and rows in memory.

| source | rows |
|---|---|
| `.csv`, `.tsv` | cells by the names in the header; a TSV has no quotes |
| `.jsonl` | a JSON object a line |
| `.parquet`, `.arrow` | rows of the table, with pyarrow |
| folder | of a `datasets.Dataset` or of a `DatasetDict` with one split, as `save_to_disk` writes them, with pyarrow |
| folder | of shards of one table, such as `train-00000-of-00002.parquet`, in the order of their names |
| in memory | an iterable of mappings, such as dicts or a `datasets.Dataset`; a table of pandas, polars or pyarrow |

Text files may be packed: their names then end in `.gz`.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import (
    bare_lines,
    column_names,
    parse_json,
    read_json,
    require_readable,
    suffix_of,
    table_rows,
)
from metasearch.errors import DataError, nearest
from metasearch.io import near, require_file

Values = Mapping[str, Any]
Source = str | Path | Iterable[Values] | Any
"""A file, a folder, or rows in memory; `Any` is a table of an optional library."""
Damage = Callable[[str, str], None]
"""Called for an unreadable row with its place and the error."""

STATE = "state.json"
"""File in every folder that `datasets.Dataset.save_to_disk` writes."""
_BATCH = 4096
"""Rows of a Parquet file in memory at a time; a row group may be as large as the file."""
_OTHER_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_SHOWN = 40
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow")
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
    damaged: Damage | None = None,
) -> Iterator[Row]:
    """Yield rows from a file, a folder or memory; see the table above.

    Args:
        source: path, or rows in memory.
        columns: name that a value gets → its column, such as `{"query": "question"}`; other columns keep theirs.
        names: names of the columns of a CSV or TSV without a header; a TSV may then be called `.txt`, too.
        damaged: called for each unreadable row, which is skipped; by default the first one is a `DataError`.

    Example:
        >>> [row.values for row in read_rows([{"question": "where?", "id": 1}], {"query": "question"})]
        [{'query': 'where?', 'id': 1}]
    """
    report = damaged or _refuse
    wanted = dict(columns or {})
    if isinstance(source, str | Path):
        yield from _renamed(_file_rows(Path(source), wanted, names, report), wanted)
    else:
        yield from _renamed(_memory_rows(source, report), wanted)


def missing_column(place: str, name: str, known: Iterable[str]) -> DataError:
    """Return the error for a missing column, with the nearest name."""
    return DataError(f"{place}: no column '{name}'.{nearest(name, filter(None, known))}")


def _refuse(place: str, reason: str) -> None:
    raise DataError(f"{place}: {reason}")


def _renamed(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[Row]:
    """Yield rows with renamed columns; `DataError` if no row has one of them."""
    new = {old: name for name, old in columns.items()}
    seen: dict[str, None] = {}
    first = ""
    for row in rows:
        first = first or row.place
        seen.update(dict.fromkeys(row.values))
        # A column that has a name which another one gets is hidden by it.
        kept = {new.get(old, old): value for old, value in row.values.items() if old in new or old not in columns}
        yield Row(row.place, row.line, kept) if new else row
    for name in columns.values():
        if seen and name not in seen:
            raise missing_column(first, name, seen)


def _file_rows(path: Path, columns: Mapping[str, str], names: Sequence[str], damaged: Damage) -> Iterator[Row]:
    kind = suffix_of(path)
    # pathlib raises an error for a name that is too long.
    if os.path.isdir(path) and kind not in (*_SUFFIXES, ".txt"):
        shards = _shards(path)
        if not shards:
            return _arrow_rows(path, data_files(_saved_table(path)))
        return (row for shard in shards for row in _file_rows(shard, columns, names, damaged))
    if kind in (".csv", ".tsv") or (names and kind == ".txt"):
        return _table(path, columns, names, damaged)
    if kind in (".jsonl", ".ndjson"):
        return _json_rows(path, damaged)
    if kind in (".parquet", ".arrow"):
        return _arrow_rows(path, [path])
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file or folder{near(path)}")
    raise DataError(
        f"{path}: expected rows in .csv, .tsv, .jsonl (also as .gz), .parquet, .arrow or a folder of "
        f"datasets; got '{kind}'"
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


def _table(path: Path, columns: Mapping[str, str], names: Sequence[str], damaged: Damage) -> Iterator[Row]:
    """Yield cells by the names in the header; blank lines have none and are passed over."""
    header = list(names)
    for line, cells in table_rows(path):
        if not cells:
            continue
        if not header:
            header = column_names(cells, path, line)
            _check_header(path, line, header, columns)
        elif len(cells) != len(header):
            expected = f"{', '.join(names)};" if names else f"{len(header)} columns,"
            damaged(f"{path}:{line}", f"expected {expected} got {len(cells)}{' columns' if names else ''}")
        else:
            # A column without a name, as spreadsheets leave at the end of rows, has nothing to be read for.
            named = ((name, cell) for name, cell in zip(header, cells, strict=True) if name)
            yield Row(f"{path}:{line}", line, {name: cell if cell.strip() else None for name, cell in named})


def _check_header(path: Path, line: int, header: Sequence[str], columns: Mapping[str, str]) -> None:
    if len(header) == 1 and (other := next((mark for mark in _OTHER_MARKS if mark in header[0]), None)):
        raise DataError(f"{path}:{line}: expected columns between commas, got {_OTHER_MARKS[other]} in the header")
    for name in columns.values():
        if name not in header:
            raise missing_column(f"{path}:{line}", name, header)


def _json_rows(path: Path, damaged: Damage) -> Iterator[Row]:
    for line, text in bare_lines(path):
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


# Tables of Arrow: Parquet files, and folders that `datasets.Dataset.save_to_disk` wrote.


def _arrow_rows(path: Path, files: Iterable[Path]) -> Iterator[Row]:
    number = 0
    for file in files:
        for batch in read_batches(file):
            for values in batch.to_pylist():
                number += 1
                yield Row(f"{path}: row {number}", number, values)


def read_batches(path: Path) -> Iterator[Any]:
    """Yield the batches of a Parquet or Arrow file; `DataError` where it cannot be read or is damaged."""
    arrow = import_extra("pyarrow", "corpora", f"{path}", DataError)
    try:
        require_file(path)
        if suffix_of(path) == ".parquet":
            parquet = import_extra("pyarrow.parquet", "corpora", f"{path}", DataError)
            with parquet.ParquetFile(path) as file:
                yield from map(_validated, file.iter_batches(_BATCH))
        else:
            # Not through a memory map, so that memory stays flat.
            with arrow.OSFile(str(path)) as file, arrow.ipc.open_stream(file) as batches:
                yield from map(_validated, batches)
    except (arrow.ArrowException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DataError(f"{path}: damaged or unreadable: {reason}") from None


def _validated(batch: Any) -> Any:
    """Return a batch whose texts can be read: of a damaged one, that might end the process."""
    batch.validate(full=True)
    return batch


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


def _memory_rows(source: Any, damaged: Damage) -> Iterator[Row]:
    if hasattr(source, "with_format"):  # a Dataset, whose rows are tables or arrays in other formats
        source = source.with_format(None)
    for name in ("to_pylist", "to_dicts"):  # of pyarrow, of polars
        source = getattr(source, name)() if hasattr(source, name) else source
    if hasattr(source, "iterrows"):  # a DataFrame, whose missing values are numbers that are none
        source = source.astype(object).where(source.notna(), None).to_dict("records")
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise DataError(
            f"rows: expected a list of dicts, a DataFrame, a Dataset or a path; got {type(source).__name__}"
        )
    for number, values in enumerate(source, 1):
        if isinstance(values, Mapping):
            yield Row(f"row {number}", number, values)
        else:
            damaged(f"row {number}", f"expected a dict, got {' '.join(repr(values).split())[:_SHOWN]}")
