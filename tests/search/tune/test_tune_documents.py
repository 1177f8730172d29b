"""Labelled documents that are longer than an encoder reads are cut into passages."""

from metasearch.data.labels import load_labels
from metasearch.search.documents.chunking import Settings
from metasearch.search.tune.job import cut_long

LIMIT = 20
LONG = "One sentence here. Two of it there. Three are enough."


def cut(*rows):
    data = load_labels([{"language": "en", **row} for row in rows])
    return cut_long(data, Settings(limit=LIMIT), lambda texts: [len(text) > LIMIT for text in texts])


def test_all_passages_of_a_long_document_are_answers_and_one_page():
    data, note = cut({"query": "a", "document": LONG, "relevance": 2}, {"query": "b", "document": "Short."})
    assert [(each.id, each.text, each.answers, each.page) for each in data.candidates] == [
        ("d1", "One sentence here.", ("q1",), "d1"),
        ("d1 passage 2", "Two of it there.", ("q1",), "d1"),
        ("d1 passage 3", "Three are enough.", ("q1",), "d1"),
        ("d2", "Short.", ("q2",), ""),
    ]
    assert data.grades == {("q1", name): 2.0 for name in ("d1", "d1 passage 2", "d1 passage 3")}
    assert [each.id for each in data.by_page.candidates] == ["d1", "d2"]
    assert "1 of 2 labelled documents" in note
    assert "cut into 3 passages of 20 tokens at most" in note


def test_short_documents_stay_as_they_are():
    data, note = cut({"query": "b", "document": "Short."})
    assert ([each.id for each in data.candidates], note) == (["d1"], "")
