"""A neutral index: what languages differ in is taken out of its vectors and of those of queries."""

import json
import sqlite3

import numpy as np
import pytest

from helpers.serving import running
from metasearch.config.index import IndexSettings
from metasearch.encoders.builtin import tiny
from metasearch.encoders.neutral import estimate
from metasearch.errors import RunFolderError
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.search.passages import of_arrays
from metasearch.retrieval.search.searcher import Searcher
from metasearch.retrieval.search.update import update

TEXTS = {
    "de": [f"Das Haus Nummer {n} steht in der Stadt." for n in range(25)],
    "en": [f"The house number {n} stands in the town." for n in range(25)],
}
NEUTRAL = IndexSettings(neutral=True)


@pytest.fixture
def encoder():
    return tiny.build()


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, texts in TEXTS.items():
        write(tmp_path, language, texts)
    return tmp_path


def write(folder, language, texts):
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / f"faq.{language}.jsonl").write_text(rows, encoding="utf-8")


def index(docs, encoder, name="index", paths=("faq.de.jsonl", "faq.en.jsonl")):
    return update(docs / name, paths, encoder, NEUTRAL)


def test_scores_are_those_of_the_map_of_its_own_passages_on_both_sides(docs, encoder):
    index(docs, encoder)
    vectors = {language: encoder.encode(texts, "candidate") for language, texts in TEXTS.items()}
    neutral = estimate(vectors)
    (query,) = neutral(encoder.encode(["house number 7"], "question"))
    expected = {
        text: query @ vector
        for tag, texts in TEXTS.items()
        for text, vector in zip(texts, neutral(vectors[tag]), strict=True)
    }
    hits = Searcher(LocalStore.open(docs / "index"), encoder).search(["house number 7"], top_k=50)[0]
    assert len(hits) == 50
    assert max(abs(hit.score - expected[hit.passage.text]) for hit in hits) < 0.02


def test_the_map_stays_as_it_is_and_a_new_language_is_told(docs, encoder, caplog):
    index(docs, encoder)
    before = of_arrays(LocalStore.open(docs / "index").arrays)
    write(docs, "fr", ["La maison est dans la ville."])
    index(docs, encoder, paths=("faq.de.jsonl", "faq.en.jsonl", "faq.fr.jsonl"))
    after = of_arrays(LocalStore.open(docs / "index").arrays)
    assert np.array_equal(before.centre, after.centre)
    assert "in languages outside the estimate of the language bias: fr 1;" in caplog.text


def test_a_server_of_it_projects_embeddings_of_queries_and_documents_alone(docs, encoder):
    index(docs, encoder)
    searcher = Searcher(LocalStore.open(docs / "index"), encoder)
    neutral = of_arrays(searcher.store.arrays)
    expected = {
        "query": neutral(encoder.encode(["house number 7"], "question")),
        "document": neutral(encoder.encode(["house number 7"], "candidate")),
        "passage": neutral(encoder.encode(["house number 7"], "candidate")),
        "text": encoder.encode(["house number 7"], "text"),
        None: encoder.encode(["house number 7"], "candidate"),
    }
    with running(searcher) as server:
        for kind, vectors in expected.items():
            _, answer = server.post("/v1/embeddings", {"input": "house number 7", "input_type": kind})
            np.testing.assert_allclose(answer["data"][0]["embedding"], vectors[0], atol=1e-5)
    np.testing.assert_allclose(searcher.encode_queries(["house number 7"]), expected["query"], atol=1e-5)
    assert np.abs(expected["document"] - expected[None]).max() > 1e-2


def test_a_damaged_map_is_named(docs, encoder):
    index(docs, encoder)
    with sqlite3.connect(docs / "index" / "index.sqlite") as file:
        file.execute("UPDATE state SET crc = crc + 1 WHERE number = 1")
    for use in (lambda: index(docs, encoder), lambda: LocalStore.open(docs / "index")):
        with pytest.raises(RunFolderError, match=r"index.sqlite: the index is damaged\. Restore the file"):
            use()
