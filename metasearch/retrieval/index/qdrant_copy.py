"""Copy a local index into a Qdrant collection: send new passages, delete old ones, keep the rest."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from metasearch.config.extras import import_extra
from metasearch.errors import RunFolderError
from metasearch.retrieval.index import qdrant
from metasearch.retrieval.index.base import Kind
from metasearch.retrieval.index.fields import scalars
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.qdrant import Address, Point, Words, errors

_AT_ONCE = 256
_MEASURED = 10_000
"""Passages in the estimate of BM25's mean length."""


@dataclass(frozen=True)
class CopyResult:
    """A collection's size and changes."""

    passages: int
    sent: int
    deleted: int


def copy_to_qdrant(
    store: LocalStore,
    address: Address,
    words: Words,
    expanded: bool = False,
    on_sent: Callable[[int, int], None] = lambda done, total: None,
    client: Any = None,
) -> CopyResult:
    """Make a new or existing collection a copy of a local index.

    A call that is killed leaves a collection that can be searched if it could be before; the next call sends the rest.
    """
    models = import_extra("qdrant_client.models", "qdrant", address.shown)
    client = client or qdrant.connect(address)
    before = qdrant.read_state(client, address)
    numbers = qdrant.numbers_of_keys(store.row_keys())
    if before is None:
        before = _create(client, address, models, store, words)
    kind = Kind(**before["kind"])
    kind.require_encoder(address.shown, store.kind.fingerprint, store.kind.dimension, store.kind.encoder)
    kind.require_settings(address.shown, store.kind)
    arrays = qdrant.pack_arrays(store.arrays)
    # The vectors of a point depend on its text and on these.
    mark = zlib.crc32(f"{arrays}|{store.contents if expanded else ''}".encode())
    there, length = qdrant.scroll_digests(client, address), float(before["length"])
    changed: list[int] = []
    fields: dict[str, None] = {}
    for rows in _parts(range(len(store))):
        for row, (passage, places) in zip(rows, store.passages(rows), strict=True):
            fields.update(dict.fromkeys(name for name, value in passage.fields.items() if scalars(value)))
            if there.get(int(numbers[row])) != Point(passage, places).payload(mark)["digest"]:
                changed.append(row)
    sent = 0
    for rows in _parts(changed):
        points = _points(store, rows, numbers[rows].tolist(), mark, words, length, expanded, models)
        with errors(address):
            client.upsert(address.collection, points=points, wait=True)
        sent += len(points)
        on_sent(sent, len(changed))
    gone = sorted(there.keys() - set(numbers.tolist()))
    for ids in _parts(gone):
        with errors(address):
            client.delete(address.collection, points_selector=models.PointIdsList(points=list(ids)), wait=True)
    state = {"contents": store.contents, "arrays": arrays, "expanded": expanded, "fields": sorted(fields)}
    with errors(address):
        client.update_collection(address.collection, metadata=state)
    return CopyResult(len(store), sent, len(gone))


def _create(client: Any, address: Address, models: Any, store: LocalStore, words: Words) -> dict[str, Any]:
    """Create the collection with its metadata, without `contents` until the first copy is whole."""
    rows = np.unique(np.linspace(0, len(store) - 1, min(len(store), _MEASURED)).astype(np.int64))
    lengths = [len(cut) for part in _parts(rows.tolist()) for cut in words([p.text for p, _ in store.passages(part)])]
    state = {
        "format": qdrant.FORMAT, "schema": qdrant.SCHEMA, "kind": asdict(store.kind), "length": float(np.mean(lengths)),
        "contents": "", "arrays": "", "expanded": False, "fields": [],
    }  # fmt: skip
    vector = models.VectorParams(size=store.kind.dimension, distance=models.Distance.DOT, on_disk=True)
    sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
    int8 = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    )
    with errors(address):
        client.create_collection(
            address.collection,
            vectors_config={qdrant.DENSE: vector, qdrant.EXPANDED: vector},
            sparse_vectors_config={qdrant.WORDS: sparse},
            quantization_config=int8,
            metadata=state,
        )
        client.create_payload_index(
            address.collection, field_name="language", field_schema=models.PayloadSchemaType.KEYWORD, wait=True
        )
        if not client.get_collection(address.collection).config.metadata:
            raise RunFolderError(f"{address.shown}: the server keeps no metadata; it must be Qdrant 1.16 or newer")
    return state


def _points(
    store: LocalStore, rows: Sequence[int], numbers: Sequence[int], mark: int, words: Words, length: float,
    expanded: bool, models: Any,
) -> list[Any]:  # fmt: skip
    passages = store.passages(rows)
    dense = store.quantised.take(rows)
    second = store.expanded.take(rows) if expanded and store.expanded else None
    points = []
    for i, cut in enumerate(words([passage.text for passage, _ in passages])):
        vector: dict[str, Any] = {qdrant.DENSE: dense[i].tolist(), qdrant.WORDS: _bm25(cut, length, models)}
        if second is not None:
            vector[qdrant.EXPANDED] = second[i].tolist()
        points.append(models.PointStruct(id=numbers[i], vector=vector, payload=Point(*passages[i]).payload(mark)))
    return points


def _bm25(cut: Sequence[int], length: float, models: Any) -> Any:
    """Return the weights of a text's words, f / (f + k1 (1 - b + b |text| / mean)); Qdrant multiplies with the IDF."""
    unique, counts = np.unique(np.asarray(cut, np.int64), return_counts=True)
    weights = counts / (counts + qdrant.K1 * (1 - qdrant.B + qdrant.B * len(cut) / length))
    return models.SparseVector(indices=unique.tolist(), values=weights.tolist())


def _parts(rows: Sequence[int]) -> list[list[int]]:
    return [list(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE)]
