"""A collection of Qdrant, in the client's own engine: a copy of a local index that answers as it does."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.indexes import cut_words as words
from helpers.indexes import found_by, made, queries, texts_of, write_index
from helpers.qdrant_edge import CollectionStatus, EdgeClient
from metasearch.errors import ConfigError, RunFolderError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.qdrant import QdrantStore, parse_address
from metasearch.search.index.stores import database, is_address, open_store
from metasearch.search.settings import parse_conditions

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")

from metasearch.search.index.qdrant import copy_to_qdrant  # noqa: E402

ADDRESS = "qdrant://localhost:6333/help"


pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")


@pytest.fixture
def client():
    return qdrant_client.QdrantClient(":memory:")


def copied(client, folder, content):
    store = LocalStore.open(write_index(folder, content))
    return store, copy_to_qdrant(store, ADDRESS, words, client=client)


def test_an_emptied_collection_is_filled_again_and_one_that_was_made_again_is_noticed(tmp_path, client):
    copied(client, tmp_path / "index", made(6))
    client.delete("help", points_selector=qdrant_client.models.Filter())
    emptied = QdrantStore(ADDRESS, client)
    assert [rows.shape for rows, _ in emptied.search(queries(2))] == [(2, 0)]
    assert copied(client, tmp_path / "index", made(6))[1].sent == 6
    opened = QdrantStore(ADDRESS, client)
    ((rows, _),) = opened.search(queries(1))
    assert len(rows[0]) == 6
    client.delete_collection("help")
    assert opened.changed()
    copied(client, tmp_path / "other", made(9))
    assert opened.changed()
    assert len(opened.reopen()) == 9


def test_fields_of_others_stay_and_their_points_are_refused_in_a_line(tmp_path, client):
    copied(client, tmp_path / "index", made(6))
    client.set_payload("help", {"clicks": 7}, points=qdrant_client.models.Filter())
    assert copied(client, tmp_path / "more", made(9))[1].sent == 3
    assert sum(record.payload.get("clicks", 0) for record in client.scroll("help", limit=9)[0]) == 6 * 7
    client.upsert("help", [qdrant_client.models.PointStruct(id=5, vector={}, payload={"clicks": 1})])
    with pytest.raises(RunFolderError, match="/help: another program made the point 5; delete it or choose another"):
        copied(client, tmp_path / "again", made(9))


def test_a_copy_of_an_earlier_release_without_pages_is_one_line(tmp_path, client):
    copied(client, tmp_path / "first", made(9))
    state = dict(QdrantStore(ADDRESS, client).state)
    del state["pages"]
    client.delete_collection("help")
    vectors = {"dense": qdrant_client.models.VectorParams(size=8, distance=qdrant_client.models.Distance.DOT)}
    client.create_collection("help", vectors_config=vectors, metadata=state)
    for use in (lambda: QdrantStore(ADDRESS, client), lambda: copied(client, tmp_path / "second", made(9))):
        with pytest.raises(RunFolderError, match="without pages; delete it, and call metasearch index DOCUMENTS"):
            use()


def recall(store, index, top=10, **how):
    """Return the share of the best in an index, or of fewer that there are, among those that a store finds."""
    asked = queries(50)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)  # longer ones are cut off where vectors are in int8
    found = [texts_of(found_by(each, asked, top, **how)) for each in (index, store)]
    return np.mean([len({*best} & {*own}) / len(best) for best, own in zip(*found, strict=True)])


@pytest.mark.parametrize("exact", [0, 20_000])
def test_a_copy_finds_the_hits_of_its_folder_after_most_passages_were_deleted(tmp_path, monkeypatch, exact):
    """In Qdrant's own engine, whose graph loses most hits until it is optimised, as a server does in the background."""
    monkeypatch.setattr("metasearch.search.index.qdrant.EXACT", exact)
    client, content = EdgeClient(tmp_path / "edge"), made(3000)
    copied(client, tmp_path / "before", content)
    client.busy = True
    index, result = copied(client, tmp_path / "after", content.part(range(0, 3000, 50)))
    assert result.deleted == 3000 - 60

    waiting = QdrantStore(ADDRESS, client)
    assert recall(waiting, index) >= 0.99
    client.status = CollectionStatus.GREEN
    assert (recall(QdrantStore(ADDRESS, client), index) < 0.9) == (exact == 0)
    client.optimise()
    assert waiting.changed()
    assert recall(waiting.reopen(), index) >= 0.95


def test_a_rare_condition_finds_the_best_of_all_points_that_meet_it(tmp_path, monkeypatch):
    """In Qdrant's own engine, whose graph has no links between the points that meet it: 0.2, 3.6 and 10 %."""
    monkeypatch.setattr("metasearch.search.index.qdrant.EXACT", 0)
    content = made(3000)
    for i, passage in enumerate(content.passages):
        content.passages[i] = replace(passage, fields={"price": i % 500})
    client = EdgeClient(tmp_path / "edge")
    index, _ = copied(client, tmp_path / "index", content)
    for price in (1, 18, 50):
        assert recall(QdrantStore(ADDRESS, client), index, 2, where=parse_conditions([f"price<{price}"])) >= 0.97


def test_a_copy_that_was_killed_is_never_searched_and_goes_on(tmp_path, client, monkeypatch):
    calls, upsert = [], client.upsert

    def killed(*args, **keys):
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        return upsert(*args, **keys)

    monkeypatch.setattr("metasearch.search.index.copies.AT_ONCE", 16)
    monkeypatch.setattr(client, "upsert", killed)
    with pytest.raises(KeyboardInterrupt):
        copied(client, tmp_path / "index", made(40))
    with pytest.raises(RunFolderError, match="incomplete; call metasearch index"):
        QdrantStore(ADDRESS, client)
    monkeypatch.setattr(client, "upsert", upsert)
    store = LocalStore.open(tmp_path / "index")
    assert copy_to_qdrant(store, ADDRESS, words, client=client).sent == 40 - 16
    assert len(QdrantStore(ADDRESS, client)) == 40


def test_what_cannot_be_searched_is_named(tmp_path, client):
    with pytest.raises(RunFolderError, match=r"qdrant://localhost:6333/help: no such collection; call"):
        QdrantStore(ADDRESS, client)
    client.create_collection("help2", vectors_config={})
    with pytest.raises(RunFolderError, match="this release of metasearch did not make the collection"):
        QdrantStore("qdrant://localhost:6333/help2", client)


@pytest.mark.parametrize(
    "text",
    ["qdrant://localhost", "qdrant://localhost:6333/", "qdrant://localhost:99999/c", "qdrant:/h/c", "qdrants://"],
)
def test_an_address_that_is_none_is_refused(text):
    assert is_address(text)
    for refused in (open_store, lambda address: database(address).check(address)):
        with pytest.raises(ConfigError, match=r"expected qdrant://HOST:PORT/COLLECTION"):
            refused(text)


def test_an_address_of_an_unknown_database_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown store 'qdrent'. Did you mean 'qdrant'"):
        open_store("qdrent://localhost/help")


def test_an_address_says_host_port_and_collection():
    assert parse_address("qdrants://db.example/help")[0] == "https://db.example:6333"
    assert parse_address("qdrant://[::1]:7000/a-b") == ("http://[::1]:7000", "a-b")
    assert not is_address("help.index")
