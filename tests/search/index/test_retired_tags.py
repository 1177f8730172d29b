"""An index that an earlier version made may have retired tags: it is searched as one with current tags."""

from dataclasses import replace

import pytest

from helpers.indexes import Made, kind, made, queries, write_index
from metasearch.errors import ConfigError
from metasearch.search.index.base import passage_keys
from metasearch.search.index.local import LocalStore
from metasearch.search.index.qdrant import Address, QdrantStore, copy_to_qdrant

TAGS = {"de": "iw", "el": "he", "tr": "nb"}


@pytest.fixture
def old(tmp_path):
    """An index of 20 passages each in `iw`, `he` and `nb`."""
    content = made(60)
    passages = [replace(passage, language=TAGS[passage.language]) for passage in content.passages]
    return write_index(tmp_path / "old", Made(content.vectors, passages, content.keys))


def check(store):
    assert store.languages == {"he": 40, "no": 20}
    ((rows, _),) = store.search(queries(1), top_k=60, groups=[["he"]])
    found = [passage for passage, _ in store.passages(rows[0])]
    assert len(found) == 40
    assert {passage.language for passage in found} == {"he"}


def collection(folder, monkeypatch):
    """A copy of an index, as an earlier version made it."""
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    address = Address.parse("qdrant://localhost:6333/help")
    with monkeypatch.context() as patch:
        patch.setattr("metasearch.search.index.local.normalise_tag", lambda tag: tag)
        copy_to_qdrant(LocalStore.open(folder), address, lambda texts: [[1] for _ in texts], client=client)
    return QdrantStore(address, client)


def test_a_local_index_is_searched_by_current_tags(old):
    check(LocalStore.open(old))


def test_a_collection_is_searched_by_current_tags(old, monkeypatch):
    check(collection(old, monkeypatch))


def test_equal_texts_under_a_retired_tag_are_found(tmp_path, monkeypatch):
    content = made(3)
    passages = [
        replace(each, text="one text", language=tag) for each, tag in zip(content.passages, TAGS.values(), strict=True)
    ]
    folder = write_index(tmp_path / "old", Made(content.vectors, passages, passage_keys(passages)))
    for store in (LocalStore.open(folder), collection(folder, monkeypatch)):
        found = store.equal_rows([replace(passages[0], language="he")], ["he", "no"])
        assert sorted(tag for tag, _ in found[0].values()) == ["he", "he", "no"]


def test_settings_with_a_retired_tag_are_the_same_settings():
    before = kind(language="iw", detect=["nb", "de"])
    before.require_settings("one", kind(language="he", detect=["no", "de"]))
    with pytest.raises(ConfigError, match=r'with detect \["no", "de"\], not \["nn", "de"\]'):
        before.require_settings("one", kind(language="he", detect=["nn", "de"]))
