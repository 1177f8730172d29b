"""Qdrant's own engine, embedded (`qdrant-edge-py`), behind the calls of its client that a collection needs.

The client's local mode searches by arithmetic in Python; this is the server's code, with its index and int8 vectors.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

CollectionStatus = pytest.importorskip("qdrant_client.models", reason="needs the extra qdrant").CollectionStatus


class EdgeClient:
    """One collection in a folder. What only a server has, its metadata and its status, is kept beside it.

    A server optimises in the background: it is yellow until then. Here that is at the end of an update, or after it
    where `busy` is set.
    """

    busy = False

    def __init__(self, folder):
        self.edge = pytest.importorskip("qdrant_edge", reason="pip install qdrant-edge-py")
        self.folder, self.shard, self.metadata = folder, None, {}
        self.status = CollectionStatus.GREEN

    def collection_exists(self, name):
        return self.shard is not None

    def create_collection(self, name, vectors_config, sparse_vectors_config, quantization_config, metadata):
        edge, scalar = self.edge, quantization_config.scalar
        config = edge.EdgeConfig(
            vectors={
                name: edge.EdgeVectorParams(size=each.size, distance=edge.Distance.Dot, on_disk=each.on_disk)
                for name, each in vectors_config.items()
            },
            sparse_vectors={
                name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf) for name in sparse_vectors_config
            },
            # In kB: a small collection has a graph, too, and is searched by it.
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=1),
            hnsw_config=edge.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=1),
            quantization_config=edge.ScalarQuantizationConfig(edge.ScalarType.Int8, always_ram=scalar.always_ram),
        )
        self.folder.mkdir(exist_ok=True)
        self.shard, self.metadata = edge.EdgeShard.create(str(self.folder), config), dict(metadata)

    def get_collection(self, name):
        return SimpleNamespace(config=SimpleNamespace(metadata=self.metadata), status=self.status)

    def update_collection(self, name, metadata):
        self.metadata = {**self.metadata, **metadata}
        if not self.busy:
            self.optimise()

    def optimise(self):
        self.shard.optimize()
        self.status = CollectionStatus.GREEN

    def create_payload_index(self, name, field_name, field_schema, wait):
        self.shard.update(self.edge.UpdateOperation.create_field_index(field_name, self.edge.PayloadSchemaType.Keyword))

    def upsert(self, name, points, wait):
        made = [self.edge.Point(each.id, self._converted(each.vector), each.payload) for each in points]
        self.shard.update(self.edge.UpdateOperation.upsert_points(made))

    def delete(self, name, points_selector, wait):
        self.status = CollectionStatus.YELLOW
        self.shard.update(self.edge.UpdateOperation.delete_points(points_selector.points))

    def scroll(self, name, limit, offset, with_payload, with_vectors):
        return self.shard.scroll(self.edge.ScrollRequest(offset, limit, None, with_payload, with_vectors))

    def retrieve(self, name, ids, with_payload):
        return self.shard.retrieve(ids, with_payload, False)

    def facet(self, name, key, limit, exact):
        return self.shard.facet(self.edge.FacetRequest(key, limit, exact))

    def count(self, name, count_filter, exact):
        request = self.edge.CountRequest(exact, self._converted(count_filter))
        return SimpleNamespace(count=self.shard.count(request))

    def query_batch_points(self, name, requests):
        made = [
            self.edge.QueryRequest(
                limit=each.limit,
                query=self.edge.Query.Nearest(self._converted(each.query), using=each.using),
                filter=self._converted(each.filter),
                params=self._converted(each.params),
                with_payload=each.with_payload,
            )
            for each in requests
        ]
        found = self.shard.query_batch(self.edge.QueryBatchRequest(made))
        return [SimpleNamespace(points=points) for points in found]

    def _converted(self, value: Any) -> Any:
        """Return a model of the client as the engine has it: the classes have the same names and fields."""
        if isinstance(value, dict):
            return {key: self._converted(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._converted(each) for each in value]
        if not isinstance(value, BaseModel):
            return value
        name = {"Range": "RangeFloat"}.get(type(value).__name__, type(value).__name__)
        given = {key: getattr(value, key) for key in type(value).model_fields}
        return getattr(self.edge, name)(**{k: self._converted(each) for k, each in given.items() if each is not None})
