"""Read text columns from Parquet files with pyarrow, an optional package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.errors import DataError, nearest
from metasearch.io import require_file

_ROWS = 4096
"""Rows that are read at a time; a group of rows of the file may be as large as the file."""


def text_pairs(path: Path, first: str, second: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the texts of two columns, row by row, as UTF-8; an empty text where there is no value.

    The columns are those of the file or the fields of its only column, as the column `translation` of datasets has one
    for each language.

    Raises:
        DataError: pyarrow is not installed, the file cannot be read or is damaged, or lacks a column of text.
    """
    pyarrow = import_extra("pyarrow", "corpora", f"{path}: .parquet", DataError)
    parquet = import_extra("pyarrow.parquet", "corpora", f"{path}: .parquet", DataError)
    number = 0
    try:
        require_file(path)
        with parquet.ParquetFile(path) as file:
            outer = _column(path, file.schema_arrow, first, second, pyarrow.types)
            columns = [outer] if outer else [first, second]
            for batch in file.iter_batches(_ROWS, columns=columns):
                fields = batch.column(outer).flatten() if outer else batch.columns
                names = [field.name for field in batch.schema.field(outer).type] if outer else batch.schema.names
                sides = [fields[names.index(name)].to_pylist() for name in (first, second)]
                for source, target in zip(*sides, strict=True):
                    number += 1
                    yield (source or "").encode(), (target or "").encode()
    except pyarrow.ArrowException as error:
        raise DataError(f"{path}: damaged Parquet file after row {number}: {str(error).splitlines()[0]}") from None
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise DataError(f"{path}: cannot be read after row {number}: {reason}") from None


def _column(path: Path, schema: Any, first: str, second: str, types: Any) -> str:
    """Return the struct column whose fields hold the texts; empty if they are plain columns."""
    only = schema[0] if len(schema.names) == 1 and types.is_struct(schema[0].type) else None
    known = {field.name: field.type for field in (schema if only is None else only.type)}
    for name in (first, second):
        if name not in known:
            raise DataError(f"{path}: no column '{name}'; expected one per language.{nearest(name, known)}")
        if not (types.is_string(known[name]) or types.is_large_string(known[name])):
            raise DataError(f"{path}: column '{name}' is {known[name]}; expected text")
    return "" if only is None else str(only.name)
