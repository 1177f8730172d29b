"""`POST /search`: the searcher's own hits."""

import pytest

from helpers.serving import running
from metasearch.search.index import mapped_vectors
from metasearch.search.settings import RankingSettings


def test_hits_are_those_of_the_searcher_best_first(served, searcher):
    queries = ["Where do keepers live?", "Wer tanzt auf der Wabe?"]
    status, answer = served.post("/search", {"queries": queries, "top_k": 4})
    assert status == 200
    for query, found, expected in zip(queries, answer["results"], searcher.search(queries, top_k=4), strict=True):
        assert found["query"] == query
        for name in ("text", "file", "line", "language"):
            assert [hit[name] for hit in found["hits"]] == [getattr(hit.passage, name) for hit in expected]
        assert [hit["score"] for hit in found["hits"]] == pytest.approx([hit.score for hit in expected], abs=2e-6)
        scores = [hit["score"] for hit in found["hits"]]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("query", "how", "ranking"),
    [
        ("Pharos", {"top_k": 3}, "hybrid"),
        ("Where do keepers live?", {"top_k": 9, "by": "passage"}, "expand"),
    ],
)
def test_hybrid_and_expand_rank_as_the_searcher_does(served, searcher, query, how, ranking):
    expected = [hit.passage.text for hit in searcher.search([query], **how, **{ranking: True})[0]]
    _, plain = served.post("/search", {"query": query, **how})
    _, asked = served.post("/search", {"query": query, **how, ranking: True})
    assert [hit["text"] for hit in asked["results"][0]["hits"]] == expected
    assert [hit["text"] for hit in plain["results"][0]["hits"]] != expected


def test_an_index_that_is_too_large_to_expand_is_an_error_of_the_key(served, searcher, monkeypatch):
    searcher.search(["bees"], expand=True)
    monkeypatch.setattr(mapped_vectors, "MOST", 1)
    monkeypatch.delitem(vars(searcher.store), "_expanded")
    status, answer = served.post("/search", {"query": "bees", "expand": True})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (422, "cannot_expand", "expand")
    assert answer["error"]["message"].startswith("expand: expansion compares all passages with each other, at most 1")


def test_without_a_key_or_with_null_a_search_ranks_as_the_index_says(searcher, monkeypatch):
    monkeypatch.setattr(searcher, "ranking", RankingSettings(hybrid=True, expand=False, balance=False, by="page"))
    with running(searcher) as server:
        asked = [{}, {"hybrid": None}, {"hybrid": True}, {"hybrid": False}]
        answers = [server.post("/search", {"query": "Pharos", "top_k": 3, **keys})[1] for keys in asked]
        assert server.get("/index")[1]["ranking"]["hybrid"] is True
    assert answers[0] == answers[1] == answers[2] != answers[3]


def test_a_query_that_is_too_long_is_cut_and_that_is_said(served, searcher):
    _, answer = served.post("/search", {"queries": ["bees", "bees " * 300]})
    assert (answer["truncated"], answer["max_tokens"]) == ([1], searcher.encoder.limit("question"))


def test_the_index_is_described(served):
    assert served.get("/index") == (
        200,
        {
            "model": "mini",
            "dimensions": 384,
            "max_hits": 20,
            "passages": 60,
            "languages": {"ar": 20, "de": 20, "en": 20},
            "ranking": {"hybrid": False, "expand": False, "balance": False, "by": "group"},
            "unknown_languages": {},
        },
    )


@pytest.mark.parametrize(("most", "hits"), [(4, 4), (20, 10)])
def test_without_top_k_there_are_ten_hits_or_as_many_as_may_be(searcher, most, hits):
    with running(searcher, hits=most) as server:
        _, answer = server.post("/search", {"query": "bees"})
        assert len(answer["results"][0]["hits"]) == hits
        assert server.post("/search", {"query": "bees", "top_k": most + 1})[0] == 422


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/srv/e5", "e5"),
        ("intfloat/e5-small", "intfloat/e5-small"),
        ("runs/shop/model", "shop"),
    ],
)
def test_the_path_of_a_local_encoder_is_told_to_nobody(searcher, monkeypatch, tmp_path, name, shown):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/shop/model").mkdir(parents=True)
    monkeypatch.setattr(searcher.encoder, "name", name)
    with running(searcher) as server:
        assert server.get("/health") == (200, {"status": "ready", "model": shown})
