"""An index that an earlier version made may have retired tags: it is searched as one with current tags."""

from dataclasses import replace

import pytest

from helpers.indexes import Made, kind, made, queries, write_index
from metasearch.errors import ConfigError
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.qdrant import Address, QdrantStore, copy_to_qdrant

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


def test_a_local_index_is_searched_by_current_tags(old):
    check(LocalStore.open(old))


def test_a_collection_is_searched_by_current_tags(old, monkeypatch):
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    address = Address.parse("qdrant://localhost:6333/help")
    # As an earlier version read the index.
    with monkeypatch.context() as patch:
        patch.setattr("metasearch.retrieval.index.local.normalise_tag", lambda tag: tag)
        copy_to_qdrant(LocalStore.open(old), address, lambda texts: [[1] for _ in texts], client=client)
    check(QdrantStore(address, client))


def test_settings_with_a_retired_tag_are_the_same_settings():
    before = kind(language="iw", detect=["nb", "de"])
    before.require_settings("one", kind(language="he", detect=["no", "de"]))
    with pytest.raises(ConfigError, match=r'with detect \["no", "de"\], not \["nn", "de"\]'):
        before.require_settings("one", kind(language="he", detect=["nn", "de"]))
