"""The contract of all stores: each copy of an index answers as the folder does, or refuses in one line."""

import importlib.util
import os
import re
from itertools import product

import numpy as np
import pytest

from helpers import indexes
from helpers.documents import DOCUMENTS
from helpers.indexes import Given, Made, key_of, made, write_index
from helpers.qdrant_edge import EdgeClient
from metasearch.config.index import parse_conditions
from metasearch.data.documents.passage import Passage
from metasearch.retrieval.index.base import SearchError
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.postgresql import PostgresStore
from metasearch.retrieval.index.qdrant import Address, QdrantStore, connect
from metasearch.retrieval.search.searcher import Searcher

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
_FILE = r"^`metasearch/retrieval/index/memory.py`:\n\n```python\n(.*?)^```$"
(EXAMPLE,) = re.findall(_FILE, DOCUMENTS["CONTRIBUTING.md"], flags=re.S | re.M)
PRICES = (5, 20, None)
ROUNDED = 3e-4
"""Vectors in float16, or queries in 15 bits. Closer scores may change places."""


def queries(count=4):
    """Return vectors of length 1, as those of an encoder are: Qdrant cuts off what is longer than what it stores."""
    found = indexes.queries(count)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Sixty passages in three languages, a third of each without a price."""
    content = made(60)
    fields = [{} if price is None else {"price": price} for price in (PRICES[i // 3 % 3] for i in range(60))]
    passages = [
        Passage(each.text, each.file, each.line, each.language, own)
        for each, own in zip(content.passages, fields, strict=True)
    ]
    content = Made(content.vectors, passages, np.array([key_of(passage) for passage in passages]))
    return LocalStore.open(write_index(tmp_path_factory.mktemp("stores") / "index", content))


def words(texts):
    return [[sum(word.encode()) for word in text.split()] for text in texts]


def memory(folder, patch, request):
    (folder / "memory.py").write_text(EXAMPLE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("memory", folder / "memory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STORE, "memory://help"


def qdrant(folder, patch, request):
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    patch.setattr("metasearch.retrieval.index.qdrant.connect", lambda address: client)
    return QdrantStore, "qdrant://localhost/help"


def qdrant_engine(folder, patch, request):
    client = EdgeClient(folder / "shard")
    patch.setattr("metasearch.retrieval.index.qdrant.connect", lambda address: client)
    return QdrantStore, "qdrant://localhost/help"


def qdrant_server(folder, patch, request):
    url = os.environ.get("QDRANT_URL")
    if not url:
        pytest.skip("QDRANT_URL names no server of Qdrant, such as http://localhost:6333")
    address = f"{url.rstrip('/').replace('http', 'qdrant', 1)}/metasearch_{os.getpid()}"
    request.addfinalizer(lambda: connect(Address.parse(address)).delete_collection(f"metasearch_{os.getpid()}"))
    return QdrantStore, address


def postgresql(folder, patch, request):
    server = request.getfixturevalue("postgres_server")
    server.clear()
    return PostgresStore, server.address("help")


@pytest.fixture(
    scope="module", params=[memory, qdrant, qdrant_engine, qdrant_server, postgresql], ids=lambda make: make.__name__
)
def copied(request, local, tmp_path_factory):
    """The copy of the local index in each store."""
    with pytest.MonkeyPatch.context() as patch:
        plug_in, address = request.param(tmp_path_factory.mktemp("copied"), patch, request)
        plug_in.check(address, expanded=False)
        told = []
        result = plug_in.copy(local, address, words, False, lambda done, total: told.append((done, total)))
        assert (result.passages, result.sent, result.deleted) == (60, 60, 0)
        assert told[-1] == (60, 60)
        yield plug_in.open(address)


def found(store, **asked):
    """Return for each group and query the passages with their places, and the scores."""
    return [([store.passages(row) for row in rows], scores) for rows, scores in store.search(queries(), **asked)]


def test_it_has_the_passages_of_the_index(local, copied):
    assert (copied.kind, len(copied), dict(copied.languages)) == (local.kind, len(local), local.languages)
    assert list(copied.languages.values()) == sorted(copied.languages.values(), reverse=True)
    assert not copied.changed()
    assert dict(copied.reopen().languages) == local.languages


@pytest.mark.parametrize(
    ("groups", "where"),
    [*product([[()], [["de"], ["el", "tr"]]], [[], ["price<10"], ["price!=20"], ["price>=5", "price<=20"]])],
)
def test_it_finds_what_the_index_finds(local, copied, groups, where):
    asked = {"top_k": 7, "groups": groups, "where": parse_conditions(where)}
    ((every, of_every),) = found(local, top_k=60)
    exact = [dict(zip(map(repr, own), scores, strict=True)) for own, scores in zip(every, of_every, strict=True)]
    for (passages, scores), (_, expected) in zip(found(copied, **asked), found(local, **asked), strict=True):
        np.testing.assert_allclose(scores, expected, atol=ROUNDED)
        own = [[known[repr(each)] for each in ranked] for known, ranked in zip(exact, passages, strict=True)]
        np.testing.assert_allclose(own, expected, atol=ROUNDED)


def test_more_hits_than_passages_are_all_of_them(copied):
    ((rows, scores),) = copied.search(queries(1), top_k=100, groups=[["de"]], where=parse_conditions(["price=5"]))
    assert rows.shape == scores.shape == (1, sum(i % 3 == 0 and i // 3 % 3 == 0 for i in range(60)))
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"groups": [["dd"]]}, "languages"),
        ({"where": parse_conditions(["prize<3"])}, "where"),
    ],
)
def test_what_no_passage_has_is_refused_with_the_nearest(local, copied, asked, param):
    with pytest.raises(SearchError) as exact:
        local.search(queries(), **asked)
    with pytest.raises(SearchError) as error:
        copied.search(queries(), **asked)
    assert (error.value.param, error.value.code, str(error.value)) == (param, exact.value.code, str(exact.value))


def test_a_searcher_searches_it_and_expansion_without_vectors_is_refused(local, copied):
    vectors = queries()
    hits = [Searcher(store, Given(vectors)).search(["0", "2"], top_k=5, balance=True) for store in (local, copied)]
    assert [[hit.passage for hit in own] for own in hits[0]] == [[hit.passage for hit in own] for own in hits[1]]
    with pytest.raises(SearchError, match="has no expanded vectors"):
        Searcher(copied, Given(vectors)).search(["0"], expand=True)
