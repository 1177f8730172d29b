"""Writes the vectors and passages of an index to a Parquet file; `docs/search-index.md` lists its columns."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError
from metasearch.io import NEW, move, require_room, write_error
from metasearch.retrieval.index.base import fields_to_json
from metasearch.retrieval.index.local import LocalStore

Precision = Literal["float16", "float32"]
_ROWS = 2**14
"""Rows of a group, which is written before the next one is read."""


def require_writable(path: Path) -> None:
    """Raise `ConfigError` if a vector file cannot be written: no pyarrow, another kind of file, or a folder."""
    import_extra("pyarrow", "corpora", f"--vectors {path}")
    if path.suffix != ".parquet" or path.is_dir():
        raise ConfigError(f"--vectors {path}: expected the name of a file that ends in .parquet")


def write_vectors(
    store: LocalStore,
    path: Path,
    precision: Precision = "float16",
    on_written: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write an index's passages with their vectors, group by group, atomically."""
    require_writable(path)
    parquet = import_extra("pyarrow.parquet", "corpora", f"--vectors {path}")
    width = np.dtype(precision).itemsize
    new = path.with_name(f"{path.name}{NEW}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        require_room(path, len(store) * store.kind.dimension * width, "vectors")
        keys = store.row_keys()
        with new.open("wb") as file:
            with parquet.ParquetWriter(file, _schema(store, precision)) as writer:
                for start in range(0, len(store), _ROWS):
                    rows = range(start, min(start + _ROWS, len(store)))
                    ids = [keys[row].tobytes().hex() for row in rows]
                    writer.write_batch(_batch(store, rows, ids, writer.schema, precision))
                    on_written(rows.stop, len(store))
            os.fsync(file.fileno())
        move(new, path)
    except BaseException as error:
        with suppress(OSError):
            new.unlink()
        if isinstance(error, OSError):
            raise write_error(path, error) from None
        raise


def _schema(store: LocalStore, precision: Precision) -> Any:
    arrow = import_extra("pyarrow", "corpora", "--vectors")
    number = arrow.float16() if precision == "float16" else arrow.float32()
    texts = [arrow.field(name, arrow.string(), nullable=False) for name in ("id", "text", "language", "file")]
    counts = [arrow.field(name, arrow.int32(), nullable=False) for name in ("line", "places")]
    vector = arrow.field("vector", arrow.list_(number, store.kind.dimension), nullable=False)
    facts = {"encoder": store.kind.encoder, "fingerprint": store.kind.fingerprint, "projected": bool(store.arrays)}
    columns = [*texts, *counts, arrow.field("fields", arrow.string()), vector]
    return arrow.schema(columns, {"metasearch": json.dumps(facts)})


def _batch(store: LocalStore, rows: range, ids: list[str], schema: Any, precision: Precision) -> Any:
    arrow = import_extra("pyarrow", "corpora", "--vectors")
    vectors = store.quantised.take(list(rows))
    if precision == "float16" and np.abs(vectors).max() > np.finfo(np.float16).max:
        raise ConfigError(
            f"a number of a vector is {np.abs(vectors).max():g}, too large for float16; take --vectors-dtype float32"
        )
    found = store.passages(rows)
    passages, places = [passage for passage, _ in found], [count for _, count in found]
    columns = {
        "id": ids,
        **{name: [getattr(each, name) for each in passages] for name in ("text", "language", "file", "line")},
        "places": places,
        "fields": [fields_to_json(each.fields) or None for each in passages],
    }
    arrays = [arrow.array(columns[field.name], field.type) for field in schema if field.name in columns]
    flat = arrow.array(vectors.astype(precision).ravel())
    vector = arrow.FixedSizeListArray.from_arrays(flat, store.kind.dimension)
    return arrow.record_batch([*arrays, vector], schema=schema)
