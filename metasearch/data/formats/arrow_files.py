"""Parquet and Arrow files: their batches, and the values in these as Python has them.

An `.arrow` file is in the streaming format of Arrow IPC, as `datasets` writes it, or in its file format, as polars,
pandas, R and Julia write it (also called Feather 2).
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.data.formats.text_files import PACKED, suffix_of
from metasearch.errors import DataError
from metasearch.io import require_file

SUFFIXES = (".parquet", ".arrow", ".feather")
_BATCH = 4096
"""Rows of a Parquet file in memory at a time; a row group may be as large as the file."""
_FILE_MAGIC, _FEATHER_1 = b"ARROW1", b"FEA1"
"""First bytes of the file format of Arrow IPC, and of the format that it replaced."""


def read_batches(path: Path) -> Iterator[Any]:
    """Yield the batches of a Parquet or Arrow file; `DataError` where it cannot be read or is damaged."""
    arrow = import_extra("pyarrow", "corpora", f"{path}", DataError)
    if path.suffix == PACKED:
        raise DataError(
            f"{path}: packed {suffix_of(path)} files cannot be read; unpack it, since it is compressed itself"
        )
    try:
        require_file(path)
        if suffix_of(path) == ".parquet":
            parquet = import_extra("pyarrow.parquet", "corpora", f"{path}", DataError)
            with parquet.ParquetFile(path) as file:
                yield from map(_validated, file.iter_batches(_BATCH))
            return
        # Not through a memory map, so that memory stays flat.
        with arrow.OSFile(str(path)) as file:
            head = file.read(len(_FILE_MAGIC))
            file.seek(0)
            if head.startswith(_FEATHER_1):
                raise DataError(f"{path}: version 1 of Feather is not read; write it as version 2, or as Parquet")
            if head == _FILE_MAGIC:
                with arrow.ipc.open_file(file) as batches:
                    yield from (_validated(batches.get_batch(i)) for i in range(batches.num_record_batches))
            else:
                with arrow.ipc.open_stream(file) as batches:
                    yield from map(_validated, batches)
    except (arrow.ArrowException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DataError(f"{path}: damaged or unreadable: {reason}") from None


def _validated(batch: Any) -> Any:
    """Return a batch whose texts can be read: of a damaged one, that might end the process."""
    batch.validate(full=True)
    return batch


_UNCONVERTIBLE = (OverflowError, ValueError, KeyError, NotImplementedError)
"""Errors of values without a Python type: far dates, time zones that are not installed, repeated fields of structs."""


def plain_columns(batch: Any) -> list[list[Any]]:
    """Return the values of each column of a batch.

    Python has no dates beyond the year 9999, and no time zones that are not installed: such a value is a text, as Arrow
    writes it, or None.
    """
    return [_plain(column) for column in batch.columns]


def _plain(column: Any) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
        return found
    except _UNCONVERTIBLE:
        return [_plain_value(column, i) for i in range(len(column))]


def _plain_value(column: Any, i: int) -> Any:
    with suppress(*_UNCONVERTIBLE):
        return column[i].as_py()
    with suppress(*_UNCONVERTIBLE):
        return str(column[i : i + 1].cast("string")[0].as_py())
    return None
