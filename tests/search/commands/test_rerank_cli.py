"""A cross-encoder in `search`, `evaluate` and `serve`: the same scores from all of them."""

import json

import pytest

from helpers.commands import metasearch
from helpers.cross_encoders import write_cross_encoder
from helpers.files import write_all
from helpers.serving import running
from metasearch.search.indexes import index_documents, open_searcher

QUERY = "where is the key"
TEXTS = {"en": ["the key is under the mat", "a house by night", "old houses and keys"], "de": ["near the house"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_cross_encoder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    write_all(folder, {f"{tag}{i}.{tag}.txt": text for tag, texts in TEXTS.items() for i, text in enumerate(texts)})
    index_documents([folder], folder / "index", "mini", {"titles": False})
    return folder / "index"


def scored(hits):
    return [(round(hit["score"], 4), hit["text"]) for hit in hits]


def test_search_and_serve_rerank_with_the_scores_of_the_model(index, model):
    searcher = open_searcher(index, "cpu", rerank=model)
    texts = [text for group in TEXTS.values() for text in group]
    expected = sorted(zip(searcher.reranker.scores(QUERY, texts).tolist(), texts, strict=True), reverse=True)
    found = metasearch("search", index, QUERY, "--rerank", model, "--json", "--top-k", 4)
    assert scored(json.loads(found.stdout)["hits"]) == [(round(score, 4), text) for score, text in expected]
    with running(searcher, hits=4) as served:
        status, answer = served.post("/search", {"query": QUERY, "top_k": 4, "rerank": True})
        assert (status, scored(answer["results"][0]["hits"])) == (200, scored(json.loads(found.stdout)["hits"]))
        for wrong, code in ((3, "cannot_rerank"), (101, "invalid_rerank")):
            status, answer = served.post("/search", {"query": QUERY, "top_k": 4, "rerank": wrong})
            assert (status, answer["error"]["code"], answer["error"]["param"]) == (422, code, "rerank")
        status, answer = served.post("/search", {"query": QUERY, "rerank": "yes"})
        assert (status, answer["error"]["code"]) == (422, "invalid_body")


@pytest.mark.slow
def test_evaluate_reranks_the_pool_of_all_languages_and_its_rows_name_the_model(model):
    found = metasearch("evaluate", "--task", "demo", "--encoder", "tiny", "--json", "--pool", "multilingual",
                "--pool", "reranked", "--rerank", model, "--rerank-top", 2)  # fmt: skip
    rows = json.loads(found.stdout)["results"]
    by_pool = {
        pool: [row for row in rows if row["pool"] == pool and row["language"] == "mean"]
        for pool in ("multilingual", "reranked")
    }
    assert [row["measure"] for row in by_pool["reranked"]] == [row["measure"] for row in by_pool["multilingual"]]
    assert {(row["reranker"], row["rerank_top"]) for row in by_pool["reranked"]} == {(model, 2)}
    assert not any("reranker" in row for row in by_pool["multilingual"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "x", "key", "--rerank-top", "5"], "--rerank-top: nothing is reranked; add --rerank MODEL"),
        (["serve", "x", "--rerank-top", "5"], "--rerank-top: nothing is reranked; add --rerank MODEL"),
        (["evaluate", "--rerank", "m"], "--rerank: nothing is reranked; add --pool reranked"),
        (["evaluate", "--encoder", "tiny", "--pool", "reranked"], "name one with --rerank MODEL"),
    ],
)
def test_options_that_would_do_nothing_are_refused(words, message):
    assert message in metasearch(*words, code=2).stderr
