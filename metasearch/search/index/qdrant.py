"""An index in a Qdrant collection: a copy of a local index on your own server, made by `metasearch index --to`.

Each point is a text in a language, numbered by the first 63 bits of its key. It has the named vectors `dense`
and the sparse `words` (for `--hybrid`). The metadata of the collection has the encoder, the
settings and the projection.
"""

import base64
import logging
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError, RunFolderError
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import (
    ALL,
    CopyResult,
    Kind,
    OnCount,
    PageScores,
    Ranking,
    Rows,
    Scope,
    Words,
    require_field,
    require_languages,
    require_queries,
)
from metasearch.search.index.copies import (
    EXACT,
    EXPLORED,
    CopyStore,
    copy_facts,
    digest,
    find_changed,
    lack_of_pages,
    mean_length,
    numbers_of_keys,
    page_table,
    parts,
    ranked,
    stacked,
    vectors_mark,
    word_weights,
)
from metasearch.search.index.fields import numbers_in
from metasearch.search.index.local import LocalStore
from metasearch.search.index.maps import Vectors
from metasearch.search.index.page_book import PagePlace
from metasearch.search.index.plan import SearchPlan
from metasearch.search.settings import Condition, Conditions

log = logging.getLogger(__name__)

DENSE, WORDS = "dense", "words"
FORMAT, SCHEMA = "metasearch collection", 3
KEY_VARIABLE = "QDRANT_API_KEY"
_ADDRESS = re.compile(r"(qdrants?)://([^/:?#]+|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?/([^/?#]+)")
_LANGUAGES = 10_000
_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_SCROLLED = 4096
GROUP = "page_group"
_PAGE = "page", GROUP, "page_language", "page_position"
"""Keys of a `PagePlace` in a payload."""


def parse_address(text: str) -> tuple[str, str]:
    """Return the URL of a server, and the collection there; `ConfigError` if the address is none."""
    found = _ADDRESS.fullmatch(text)
    if not found or not 0 < int(found[3] or 6333) < 2**16:
        raise ConfigError(f"'{text}': expected qdrant://HOST:PORT/COLLECTION, such as qdrant://localhost:6333/help")
    scheme, host, port, collection = found.groups()
    return f"{'https' if scheme == 'qdrants' else 'http'}://{host}:{port or 6333}", collection


def connect(url: str) -> Any:
    """Return a client of a server; its API key is read from the variable `QDRANT_API_KEY`."""
    client = import_extra("qdrant_client", "qdrant", url)
    return client.QdrantClient(url=url, api_key=os.environ.get(KEY_VARIABLE), timeout=60)


class QdrantCollection:
    """A collection by its address, such as `qdrant://localhost:6333/help`, which errors name."""

    def __init__(self, address: str, client: Any = None) -> None:
        self.address = address
        url, self.collection = parse_address(address)
        self.models = import_extra("qdrant_client.models", "qdrant", address)
        self.client = client or connect(url)

    def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the client for the collection; `RunFolderError` if the server does not do it."""
        shown, raised = self.address, import_extra("qdrant_client.http.exceptions", "qdrant", self.address)
        try:
            return getattr(self.client, method)(self.collection, **arguments)
        except raised.UnexpectedResponse as error:
            said = f"{error.status_code} {error.reason_phrase}: {error.content.decode(errors='replace')[:200]}"
            hint = f"; the key is read from {KEY_VARIABLE}" if error.status_code in (401, 403) else ""
            raise RunFolderError(f"{shown}: the server answers {said}{hint}") from None
        except raised.ResponseHandlingException as error:
            raise RunFolderError(f"{shown}: the server cannot be reached: {error}") from None

    def state(self) -> dict[str, Any] | None:
        """Return the collection's metadata, and whether it is `optimised`; or None."""
        if not self.call("collection_exists"):
            return None
        known = self.call("get_collection")
        found = dict(known.config.metadata or {})
        if found.get("format") != FORMAT or found.get("schema") != SCHEMA:
            raise RunFolderError(
                f"{self.address}: this release of metasearch did not make the collection; choose another"
            )
        if "pages" not in found:
            raise lack_of_pages(self.address)
        return {**found, "optimised": known.status == self.models.CollectionStatus.GREEN}

    def digests(self) -> dict[int, int]:
        """Return each point's number and digest."""
        found: dict[int, int] = {}
        offset = None
        while True:
            records, offset = self.call(
                "scroll", limit=_SCROLLED, offset=offset, with_payload=["digest"], with_vectors=False
            )
            if others := [record.id for record in records if "digest" not in record.payload]:
                problem = f"another program made the point {others[0]}; delete it or choose another collection"
                raise RunFolderError(f"{self.address}: {problem}")
            found.update((int(record.id), int(record.payload["digest"])) for record in records)
            if offset is None:
                return found


def _payload(passage: Passage, places: int, page: Sequence[object], mark: int) -> dict[str, Any]:
    """Return a passage as the payload of a point; `mark` tells whether its vectors are current."""
    found = {**asdict(passage), "places": places, **dict(zip(_PAGE, page, strict=True))}
    numbers = {name: numbers_in(value) for name, value in passage.fields.items()}
    found["numbers"] = {name: values for name, values in numbers.items() if values}
    return {**found, "digest": digest(found.values(), mark)}


class QdrantStore(CopyStore):
    """A collection that a `Searcher` searches as it does a local index.

    Rows are the numbers of points. Hits come from Qdrant's own index (HNSW), which is approximate, so that they can
    differ from the exact hits of a local index.
    """

    def __init__(self, address: str, client: Any = None) -> None:
        self.name = address
        self._collection = QdrantCollection(address, client)
        state = self._collection.state()
        if not state or not state["contents"]:
            problem = "the collection is incomplete" if state else "no such collection"
            raise RunFolderError(f"{address}: {problem}; call metasearch index DOCUMENTS -o INDEX --to {address}")
        self.state = state
        self.kind = Kind(**state["kind"])
        packed = base64.b64decode(state["arrays"])
        self.plan = SearchPlan.read(load(packed) if packed else {}, state.get("ranking", {}))

    @classmethod
    def check(cls, address: str) -> None:
        """Raise an error if an index cannot be copied to an address: it is wrong, or the collection is another's."""
        QdrantCollection(address).state()

    @classmethod
    def open(cls, address: str) -> "QdrantStore":
        """Open the collection at an address."""
        return cls(address)

    @classmethod
    def copy(cls, index: LocalStore, address: str, words: Words, on_sent: OnCount) -> CopyResult:
        """Make a new or existing collection a copy of a local index (`copy_to_qdrant`)."""
        return copy_to_qdrant(index, address, words, on_sent)

    @cached_property
    def languages(self) -> dict[str, int]:
        """How many passages each language has, most first."""
        found = self._collection.call("facet", key="language", limit=_LANGUAGES, exact=True)
        counts = ((str(hit.value), int(hit.count)) for hit in found.hits)
        return dict(sorted(counts, key=lambda item: (-item[1], item[0])))

    def changed(self) -> bool:
        """Return whether the collection was updated since it was opened."""
        return self._collection.state() != self.state

    def reopen(self) -> "QdrantStore":
        """Return the collection in its current state."""
        return QdrantStore(self._collection.address, self._collection.client)

    def search(
        self, vectors: Vectors, top_k: int = 10, groups: Sequence[Collection[str]] = ((),), where: Conditions = ()
    ) -> list[Ranking]:
        """Return for each group of languages the best rows and their scores, as `Store.search`; approximate."""
        require_queries(vectors, top_k)
        queries = vectors.tolist()
        return [stacked(self._ranked(queries, DENSE, top_k, Scope(languages, where))) for languages in groups]

    def search_words(self, words: Words, queries: Sequence[str], top_k: int, scope: Scope = ALL) -> list[Ranking]:
        """Return for each query the best rows by BM25 and their scores, best first, `(K,)` each."""
        distinct = [np.unique(cut).tolist() for cut in words(list(queries))]
        vector = self._collection.models.SparseVector
        sparse = [vector(indices=numbers, values=[1.0] * len(numbers)) for numbers in distinct]
        return self._ranked(sparse, WORDS, top_k, scope)

    def passages(self, rows: Sequence[int] | Rows) -> list[tuple[Passage, int]]:
        """Return the passages of rows at their first places, and how many places each has."""
        wanted = [int(row) for row in rows]
        found = self._collection.call("retrieve", ids=wanted, with_payload=True)
        payloads = {int(record.id): record.payload for record in found}
        if missing := [row for row in wanted if row not in payloads]:
            raise RunFolderError(f"{self.name}: {len(missing)} passages left the collection; search again")
        names = [each.name for each in fields(Passage)]
        return [
            (Passage(**{name: payloads[row][name] for name in names}), int(payloads[row]["places"])) for row in wanted
        ]

    def score_pages(self, vector: Vectors, ranking: Ranking, scope: Scope = ALL) -> PageScores:
        """Return all passages of the pages of some rows and of their translations, as `Store.score_pages`.

        Scores are exact, from float32 vectors. A passage at several places is in the page of its first one alone.
        """
        found = (self._collection.call("retrieve", ids=ids, with_payload=[GROUP]) for ids in parts(ranking[0].tolist()))
        groups = sorted({record.payload[GROUP] for records in found for record in records})
        models = self._collection.models
        own = models.FieldCondition(key=GROUP, match=models.MatchAny(any=groups))
        inside = models.Filter(must=[own, *self._inside(scope)])
        count = self._collection.call("count", count_filter=inside, exact=True).count
        if not count:
            return page_table([])
        params = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))
        request = models.QueryRequest(
            query=vector.tolist(), using=DENSE, params=params, filter=inside,
            limit=count, with_payload=[*_PAGE],
        )  # fmt: skip
        (answer,) = self._collection.call("query_batch_points", requests=[request])
        pages = [PagePlace(*(point.payload[key] for key in _PAGE)) for point in answer.points]
        placed = sorted(zip(pages, answer.points, strict=True), key=lambda each: (each[0].page, each[0].position))
        return page_table([(point.id, point.score, *own[:3]) for own, point in placed])

    def known_rows(self, numbers: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Return language and number of places of the points that are there."""
        asked = [
            self._collection.call("retrieve", ids=ids, with_payload=["language", "places"]) for ids in parts(numbers)
        ]
        records = [(int(each.id), each.payload) for part in asked for each in part]
        return {row: (known["language"], int(known["places"])) for row, known in records}

    def _ranked(self, queries: Sequence[Any], using: str, top_k: int, scope: Scope) -> list[Ranking]:
        models, conditions = self._collection.models, self._inside(scope)
        inside = models.Filter(must=conditions) if conditions else None
        # int8 vectors find twice as many points as are wanted, and float32 vectors rank them.
        rescored = models.QuantizationSearchParams(rescore=True, oversampling=2.0)
        # Points that fail conditions or were deleted cut the graph (HNSW) apart, deleted ones until it is optimised.
        acorn = models.AcornSearchParams(enable=bool(scope.where), max_selectivity=1.0)
        whole = using == WORDS or not self.state["optimised"] or self.count(scope.languages) <= EXACT
        near, answers = max(2 * top_k, 100) if scope.where else top_k, list[Any]()
        for exact in [True] if whole else [False, True]:
            params = models.SearchParams(hnsw_ef=EXPLORED, exact=exact, acorn=acorn, quantization=rescored)
            how = {"using": using, "limit": near, "filter": inside, "params": params if using != WORDS else None}
            requests = [models.QueryRequest(query=query, **how) for query in queries]
            answers = self._collection.call("query_batch_points", requests=requests) if requests else []
            if all(len(answer.points) == near for answer in answers):  # else few points meet the conditions
                break
        # Of equal scores the lower number comes first, as Qdrant promises no order.
        ordered = (sorted(answer.points, key=lambda point: (-point.score, point.id)) for answer in answers)
        return [ranked([(point.id, point.score) for point in points[:top_k]]) for points in ordered]

    def _inside(self, scope: Scope) -> list[Any]:
        require_languages(scope.languages, self.languages)
        models, conditions = self._collection.models, [self._condition(each) for each in scope.where]
        if scope.languages:
            tags = models.MatchAny(any=sorted(set(scope.languages)))
            conditions.append(models.FieldCondition(key="language", match=tags))
        return conditions

    def _condition(self, condition: Condition) -> Any:
        """Return a condition as Qdrant takes it, with the meaning that it has in a local index (`Column`)."""
        require_field(condition, self.state["fields"])
        models, number = self._collection.models, condition.number
        if condition.operator in _BOUNDS:
            bound = models.Range(**{_BOUNDS[condition.operator]: number})
            return models.FieldCondition(key=f'numbers."{condition.name}"', range=bound)
        key, values = f'fields."{condition.name}"', [models.MatchValue(value=condition.value)]
        if condition.value in ("true", "false"):
            values.append(models.MatchValue(value=condition.value == "true"))
        if isinstance(number, int):
            values.append(models.MatchValue(value=number))
        equal = [models.FieldCondition(key=key, match=value) for value in values]
        if number is not None and abs(number) <= 2**53:
            equal.append(models.FieldCondition(key=key, range=models.Range(gte=number, lte=number)))
        return models.Filter(**{"should" if condition.operator == "=" else "must_not": equal})


# The copy of a local index: send new passages, delete old ones, keep the rest.


def copy_to_qdrant(
    store: LocalStore,
    address: str,
    words: Words,
    on_sent: OnCount = lambda done, total: None,
    client: Any = None,
) -> CopyResult:
    """Make a new or existing collection a copy of a local index.

    A call that is killed leaves a collection that can be searched if it could be before; the next call sends the rest.
    """
    collection = QdrantCollection(address, client)
    before = collection.state()
    numbers = numbers_of_keys(store.row_keys())
    if before is None:
        before = _create(collection, store, words)
    Kind(**before["kind"]).require_same(address, store.kind)
    record = store.plan.record_of_copy
    arrays = base64.b64encode(save(record)).decode() if record else ""
    mark, pages = vectors_mark(store), store.page_places()
    there, length = collection.digests(), float(before["length"])

    def digest_of(row: int, passage: Passage, places: int) -> int:
        return int(_payload(passage, places, pages(row), mark)["digest"])

    changed, known = find_changed(store, numbers, there, digest_of)
    sent = 0
    for rows in parts(changed):
        points = _points(store, rows, numbers[rows].tolist(), pages, mark, words, length, collection.models)
        collection.call("upsert", points=points, wait=True)
        sent += len(points)
        on_sent(sent, len(changed))
    gone = sorted(there.keys() - set(numbers.tolist()))
    for ids in parts(gone):
        collection.call("delete", points_selector=collection.models.PointIdsList(points=ids), wait=True)
    collection.call("update_collection", metadata={**copy_facts(store, known), "arrays": arrays})
    return CopyResult(len(store), sent, len(gone))


def _create(collection: QdrantCollection, store: LocalStore, words: Words) -> dict[str, Any]:
    """Create the collection with its metadata, without `contents` until the first copy is whole."""
    models = collection.models
    state = {
        "format": FORMAT, "schema": SCHEMA, "kind": asdict(store.kind), "length": mean_length(store, words),
        "contents": "", "arrays": "", "fields": [], "pages": True,
    }  # fmt: skip
    vector = models.VectorParams(size=store.kind.dimension, distance=models.Distance.DOT, on_disk=True)
    sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
    int8 = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    )
    collection.call(
        "create_collection",
        vectors_config={DENSE: vector},
        sparse_vectors_config={WORDS: sparse},
        quantization_config=int8,
        metadata=state,
    )
    shown = collection.address
    log.warning(
        "%s: Qdrant rounds its vectors to int8 and searches approximately: hits may differ from a folder", shown
    )
    keyword = models.PayloadSchemaType.KEYWORD
    for name in ("language", GROUP):
        collection.call("create_payload_index", field_name=name, field_schema=keyword, wait=True)
    if not collection.call("get_collection").config.metadata:
        raise RunFolderError(f"{shown}: the server keeps no metadata; it must be Qdrant 1.16 or newer")
    return state


def _points(
    store: LocalStore, rows: Sequence[int], numbers: Sequence[int], pages: Callable[[int], PagePlace], mark: int,
    words: Words, length: float, models: Any,
) -> list[Any]:  # fmt: skip
    passages = store.passages(rows)
    dense = store.quantised.take(rows)
    points = []
    for i, cut in enumerate(words([passage.text for passage, _ in passages])):
        distinct, weights = word_weights(cut, length)  # Qdrant multiplies them with the IDF
        sparse = models.SparseVector(indices=distinct.tolist(), values=weights.tolist())
        vector = {DENSE: dense[i].tolist(), WORDS: sparse}
        payload = _payload(*passages[i], pages(rows[i]), mark)
        points.append(models.PointStruct(id=numbers[i], vector=vector, payload=payload))
    return points


STORE_QDRANT = QdrantStore
"""A copy of an index in a collection of Qdrant: `qdrant://HOST:PORT/COLLECTION`."""

STORE_QDRANTS = QdrantStore
"""The same over TLS: `qdrants://HOST:PORT/COLLECTION`."""
