"""Writes the vectors and passages of an index to a Parquet file; `docs/search-index.md` lists its columns."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError
from metasearch.io import NEW, move, require_room, write_error
from metasearch.search.documents.own_output import VECTORS_KEY, file_kind
from metasearch.search.index.base import Keys, fields_to_json
from metasearch.search.index.local import LocalStore

_ROWS = 2**14
"""Rows of a group, which is written before the next one is read."""


def require_writable(path: Path) -> None:
    """Raise `ConfigError` if a vector file cannot be written: no pyarrow, a wrong name, a folder, or another file."""
    import_extra("pyarrow", "corpora", f"--vectors {path}")
    if path.suffix != ".parquet" or path.is_dir():
        raise ConfigError(f"--vectors {path}: expected the name of a file that ends in .parquet")
    if path.exists() and not file_kind(path):
        raise ConfigError(f"--vectors {path}: the file exists and holds no vectors of metasearch; choose another name")


def write_vectors(
    store: LocalStore, path: Path, on_written: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Write an index's passages with their vectors in float16, group by group, atomically."""
    parquet = import_extra("pyarrow.parquet", "corpora", f"--vectors {path}")
    new = path.with_name(f"{path.name}{NEW}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        require_room(path, len(store) * store.kind.dimension * 2, "vectors")
        groups = [range(start, min(start + _ROWS, len(store))) for start in range(0, len(store), _ROWS)]
        keys = store.row_keys()
        schema = _batch(store, groups[0][:1], keys).schema
        with new.open("wb") as file:
            with parquet.ParquetWriter(file, schema) as writer:
                for rows in groups:
                    writer.write_batch(_batch(store, rows, keys))
                    on_written(rows.stop, len(store))
            os.fsync(file.fileno())
        move(new, path)
    except OSError as error:
        raise write_error(path, error) from None
    finally:
        with suppress(OSError):  # it is in its place
            new.unlink()


def _batch(store: LocalStore, rows: range, keys: Keys) -> Any:
    arrow = import_extra("pyarrow", "corpora", "--vectors")
    vectors = store.quantised.take(list(rows))
    if np.abs(vectors).max() > np.finfo(np.float16).max:
        raise ConfigError(f"a number of a vector is {np.abs(vectors).max():g}, too large for float16")
    found = store.passages(rows)
    passages = [passage for passage, _ in found]
    flat = arrow.array(vectors.astype(np.float16).ravel())
    columns = {
        "id": [keys[row].tobytes().hex() for row in rows],
        **{
            name: [getattr(each, name) for each in passages]
            for name in ("text", "language", "file", "heading", "anchor")
        },
        "line": np.array([each.line for each in passages], np.int32),
        "places": np.array([count for _, count in found], np.int32),
        "fields": arrow.array([fields_to_json(each.fields) or None for each in passages], arrow.string()),
        "vector": arrow.FixedSizeListArray.from_arrays(flat, store.kind.dimension),
    }
    facts = {
        "encoder": store.kind.encoder,
        "fingerprint": store.kind.fingerprint,
        "projected": store.plan.projection is not None,
    }
    return arrow.RecordBatch.from_pydict(columns, metadata={VECTORS_KEY: json.dumps(facts)})
