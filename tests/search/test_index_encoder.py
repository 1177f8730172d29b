"""The encoder of an index as a model of sentence-transformers: it encodes as the index is searched."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.commands import metasearch
from helpers.files import write
from metasearch.errors import EncoderError
from metasearch.search.index.adapters import add_adapter
from metasearch.search.index.local import LocalStore
from metasearch.search.index.stores import is_index
from metasearch.search.index.writer import writing
from metasearch.search.index_encoder import load_index_encoder
from metasearch.search.indexes import index_documents, open_searcher, use_adapter
from metasearch.search.query.estimate import LEAST_PAGES

TEXTS = ["Where is the key?", "Wo steht der Baum?", "key"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A neutral index with a prompt for queries and an adapter in use; its encoder is untrained."""
    folder = tmp_path_factory.mktemp("pages")
    for language, words in (("de", "Der Schlüssel liegt unter Matte"), ("en", "The key is under mat")):
        for number in range(LEAST_PAGES):
            write(folder / "help" / language / f"{number}.md", f"{words} {number}.\n")
    index_documents([folder / "help"], folder / "i", "tiny", {"prompts": {"question": "query: "}}, "cpu")
    kind = LocalStore.open(folder / "i").kind
    matrix = np.eye(kind.dimension) + 0.1 * np.random.default_rng(0).standard_normal((kind.dimension,) * 2)
    facts = {"name": "clicks", "date": "2026-01-01T00:00:00+00:00", "form": "answers", "labels": 8, "kept": True}
    with writing(folder / "i", kind) as writer:
        add_adapter(writer, matrix.astype(np.float32), {**facts, "result": "Kept."}, use=True)
    return folder / "i"


def require_equal(model, searcher):
    """Assert that a model gives the vectors of a search, and other ones for queries than for documents."""
    queries, documents = model.encode_query(TEXTS), model.encode_document(TEXTS)
    np.testing.assert_allclose(queries, searcher.encode_queries(TEXTS), rtol=0, atol=1e-6)
    np.testing.assert_allclose(documents, searcher.encode_documents(TEXTS), rtol=0, atol=1e-6)
    assert np.abs(queries - documents).max() > 0.01


def test_sentence_transformers_encodes_as_the_index_is_searched(index, tmp_path):
    assert LocalStore.open(index).plan.languages == ("de", "en"), "the index has a projection"
    done = metasearch("export", index, "--sentence-transformers", "-o", tmp_path / "model")
    assert "copied unchanged" not in done.stderr
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    require_equal(model, open_searcher(index, "cpu"))
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode_document(TEXTS))
    made = "with its prompts, its projection of de and en, its map of translations and its query adapter 'clicks'"
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert made in card
    # What cannot be done with it, and what it was estimated from.
    assert "Only sentence-transformers 6 loads it" in card
    assert "Only sentence-transformers 6 loads it" in done.stderr
    assert "export --onnx" not in card + done.stderr
    assert "- **pages and labels of the index** (estimated from them): its projection of de and en, its map of" in card
    assert "No data was read" not in card


def test_an_index_by_the_exported_encoder_gets_no_second_projection_centre_or_map(index, tmp_path):
    metasearch("export", index, "--sentence-transformers", "-o", tmp_path / "model")
    index_documents([index.parent / "help"], tmp_path / "again", str(tmp_path / "model"), device="cpu")
    first, second = open_searcher(index, "cpu"), open_searcher(tmp_path / "again", "cpu")
    assert second.store.plan.projection is second.store.plan.translations is None
    np.testing.assert_allclose(second.encode_queries(TEXTS), first.encode_queries(TEXTS), rtol=0, atol=1e-6)
    np.testing.assert_allclose(second.encode_documents(TEXTS), first.encode_documents(TEXTS), rtol=0, atol=1e-6)


def test_without_an_adapter_in_use_the_rest_is_exported(index, tmp_path):
    use_adapter(index, None)
    try:
        encoder, made, parts = load_index_encoder(index)
        require_equal(encoder, open_searcher(index, "cpu"))
    finally:
        use_adapter(index, "clicks")
    assert parts == "its projection of de and en and its map of translations"
    assert made.endswith(" with its prompts, its projection of de and en and its map of translations.")


def test_an_index_is_told_from_an_encoder(index, tmp_path, monkeypatch):
    (tmp_path / "tiny").symlink_to(index)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "index").symlink_to(index)
    monkeypatch.chdir(tmp_path)
    names = ("tiny", "./tiny", "shop", "postgresql://localhost/shop/help", "e5", "a/model")
    assert [is_index(name) for name in names] == [False, True, True, True, False, False]


def test_an_adapter_is_exported_as_a_whole_model_alone_and_another_encoder_is_refused(index, tmp_path, monkeypatch):
    said = metasearch("export", index, "--int8", "-o", tmp_path / "m", code=6).stderr
    assert "has a query adapter, which export with --onnx, --int8 or --dimensions does not support" in said
    assert not (tmp_path / "m").exists()
    monkeypatch.setattr("metasearch.encoders.encoder.Encoder.fingerprint", "another one")
    with pytest.raises(EncoderError, match="its vectors are of encoder 'tiny'"):
        load_index_encoder(index)
