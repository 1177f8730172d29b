"""The vectors of an index as a Parquet file: exactly what the index stores, group by group, and whole or not at all."""

import json
from dataclasses import replace

import numpy as np
import pytest

from helpers.indexes import Made, made, write_index
from metasearch.errors import ConfigError
from metasearch.search.index import vectors_file
from metasearch.search.index.base import passage_keys
from metasearch.search.index.local import LocalStore
from metasearch.search.index.vectors_file import write_vectors

parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra corpora")


@pytest.fixture
def store(tmp_path):
    content = made(50)
    passages = [replace(each, fields={"n": i} if i % 2 else {}) for i, each in enumerate(content.passages)]
    content = Made(content.vectors, [*passages, replace(passages[3], line=99)], passage_keys([*passages, passages[3]]))
    return LocalStore.open(write_index(tmp_path / "index", replace(content, vectors=content.vectors[[*range(50), 3]])))


def test_the_file_has_the_vectors_of_the_index(store, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_file, "_ROWS", 16)
    heard = []
    write_vectors(store, tmp_path / "v.parquet", lambda *done: heard.append(done))
    file = parquet.ParquetFile(tmp_path / "v.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [16, 16, 16, 2]
    assert heard == [(16, 50), (32, 50), (48, 50), (50, 50)]
    rows = file.read().to_pylist()
    vectors = np.array([row.pop("vector") for row in rows], np.float16)
    kind = file.schema_arrow.field("vector").type
    assert (str(kind.value_type), kind.list_size) == ("halffloat", 24)
    np.testing.assert_array_equal(vectors, store.quantised.take(slice(None)).astype(np.float16))
    expected = store.passages(range(50))
    assert rows == [
        {
            "id": key.tobytes().hex(), "text": each.text, "language": each.language, "file": each.file,
            "heading": each.heading, "anchor": each.anchor, "line": each.line, "places": places,
            "fields": json.dumps(each.fields).replace(" ", "") if each.fields else None,
        }
        for key, (each, places) in zip(store.row_keys(), expected, strict=True)
    ]  # fmt: skip
    assert [row["places"] for row in rows] == [1, 1, 1, 2, *[1] * 46]
    facts = json.loads(file.schema_arrow.metadata[b"metasearch"])
    assert facts == {"encoder": "mini", "fingerprint": "fingerprint-1", "projected": False}


def test_a_file_that_cannot_be_finished_leaves_the_former_one(store, tmp_path, monkeypatch):
    path = tmp_path / "v.parquet"
    path.write_bytes(b"before")
    monkeypatch.setattr(vectors_file, "_ROWS", 16)
    store.quantised.steps[40] = 1e4
    with pytest.raises(ConfigError, match=r"a number of a vector is 1.27e\+06, too large for float16"):
        write_vectors(store, path)
    assert path.read_bytes() == b"before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["index", "v.parquet"]
