"""Labelled rows become retrieval data and a benchmark."""

import logging

import pytest

from metasearch.data.benchmark import make_benchmark
from metasearch.data.labels import load_labels
from metasearch.errors import ConfigError, DataError


def row(query, document, language="en", **more):
    return {"query": query, "document": document, "language": language, **more}


def parallel(count=10):
    """Return questions in two languages, each answered by one document a language."""
    return [
        row(
            f"query {i} in {asked}", f"document {i} in {told}", query_language=asked, document_language=told, id=f"i{i}"
        )
        for i in range(count)
        for asked in ("de", "en")
        for told in ("de", "en")
    ]


def test_a_query_may_have_several_documents_and_a_document_several_queries():
    data = load_labels([row("a", "x"), row("a", "y"), row("b", "y")])
    assert [(q.id, q.text) for q in data.questions] == [("q1", "a"), ("q2", "b")]
    assert [(c.text, c.answers) for c in data.candidates] == [("x", ("q1",)), ("y", ("q1", "q2"))]


def test_queries_of_one_id_are_translations_with_the_answers_of_all():
    data = load_labels(parallel(1))
    assert {(q.id, q.language) for q in data.questions} == {("i0", "de"), ("i0", "en")}
    assert set(data.answers["i0"]) == {"de", "en"}
    assert len(data.candidates) == 2


def test_relevance_labels_gains_and_negatives_and_a_query_without_a_relevant_document_is_not_asked():
    data = load_labels([row("a", "x", relevance="2"), row("a", "y", relevance=0), row("a", "z", relevance=1)])
    assert [c.answers for c in data.candidates] == [("q1",), (), ("q1",)]
    assert data.grades == {("q1", "d1"): 2.0, ("q1", "d2"): 0.0}
    data = load_labels([row("a", "x", relevance=1), row("b", "y", relevance=0)])
    assert [q.text for q in data.questions] == ["a"]
    assert data.notes == ("skipped queries without a relevant document: 1, the first in row 2",)


@pytest.mark.parametrize(
    ("third", "groups"),
    [
        (row("c", "z"), 3),
        (row("b", "x"), 1),  # its query is that of one row, its document that of the other
        (row("A!", "z"), 2),  # a query that differs in case and punctuation
        (row("c", "X."), 2),
        (row("b", "x", relevance=0), 2),  # a document that is no answer joins nothing
    ],
)
def test_rows_with_a_document_or_a_normalised_text_in_common_are_one_group(third, groups):
    data = load_labels([row("a", "x", relevance=1), row("b", "y", relevance=1), {"relevance": 1, **third}])
    assert len(data.groups) == groups


def test_a_column_says_what_is_one_group():
    data = load_labels([row("a", "x", group="g"), row("b", "y", group="g"), row("c", "z", group="h")])
    assert [c.group for c in data.candidates] == ["group g", "group g", "group h"]


def test_columns_have_any_names_and_further_ones_are_named():
    rows = [{"question": "a", "answer": "x", "lang": "pt_br", "url": "u"}]
    data = load_labels(rows, {"query": "question", "document": "answer", "language": "lang"})
    assert data.languages == {"pt-BR"}
    assert data.notes == ("columns that are not read: url",)


def test_languages_are_detected_where_there_are_none_and_reported(caplog):
    rows = [
        {"query": "Where is the parcel that I ordered last week?", "document": "You can follow it on our page."},
        {"query": "Wo ist das Paket, das ich bestellt habe?", "document": "Sie können es auf unserer Seite verfolgen."},
        row("Und wo?", "There.", "", query_language="de"),
    ]
    with caplog.at_level(logging.INFO):
        data = load_labels(rows, languages=("de", "en"))
    assert [q.language for q in data.questions] == ["en", "de", "de"]
    note = "languages detected: en 3, de 2; if they are wrong, add a column 'language' with tags such as de"
    assert data.notes == (note,)
    assert f"rows: {note}" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,document,language\n,x,en\na,\u200b,en\n", r"labels\.csv:2: query: expected a text, got nothing"),
        ("query,document,language\na,x,english\n", r"labels\.csv:2: language: 'english' is not a language tag"),
        ("query,documents,language\na,x,en\n", r"labels\.csv:2: no column 'document'\. Did you mean 'documents'\?"),
        (
            "query,document,relevance\na,x,yes\n",
            r"labels\.csv:2: relevance: .* a valid number, .*got 'yes'",
        ),
        ("query,document,relevance\na,x,\n", r"labels\.csv:2: relevance: .* a valid number, got nothing"),
        ("query,document,relevance\na,x,-1\n", r"labels\.csv:2: relevance: .* greater than or equal to 0, got '-1'"),
        (
            "query,document,relevance\na,x,nan\n",
            r"labels\.csv:2: relevance: .* a finite number, got 'nan'",
        ),
        (
            "query,document,language,relevance\na,x,en,1\na,x,en,0\n",
            r"labels\.csv:3: relevance: got 0, and .*labels\.csv:2 has 1 for the same query and document",
        ),
        (
            "query,document,language,id\na,x,en,1\nb,y,en,1\n",
            r"labels\.csv:3: query: 'b' has the id '1' of 'a' in .*labels\.csv:2",
        ),
        ("query,document,language,relevance\na,x,en,0\n", r"labels\.csv:2: no row has a relevance above 0"),
        ("query,document\n", r"labels\.csv: no rows"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(text, message, tmp_path):
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_labels(tmp_path / "labels.csv")


def test_a_benchmark_has_folds_between_groups_and_the_arrangements():
    data = load_labels(parallel())
    benchmark = make_benchmark(data, "en_en -> en_de -> en_{de,en}", fold=1)
    own = benchmark.split
    parts = [{q.id for q in part.questions} for part in (own.train, own.dev, own.test)]
    assert [len(part) for part in parts] == [6, 2, 2]
    assert set.union(*parts) == {f"i{i}" for i in range(10)}
    assert {str(chain) for chains in benchmark.arrangements.values() for chain in chains} == {
        "en_en -> en_de -> en_{de,en}"
    }
    assert {len(each.variants) for each in benchmark.arrangements["meta-train"]} == {3}
    assert make_benchmark(data).arrangements == {}


@pytest.mark.parametrize(
    ("arrangements", "message"),
    [
        ("en_en", "'en_en' is no arrangement of two or three links"),
        ("en_en -> en_fr", r"unknown language in arrangement 'en_en -> en_fr': 'fr'\. .*Known: de, en"),
        (["en_en -> en_de", "de_de -> de_en -> de_{de,en}"], "differ in their number of links"),
    ],
)
def test_a_wrong_arrangement_is_an_error(arrangements, message):
    with pytest.raises(ConfigError, match=message):
        make_benchmark(load_labels(parallel()), arrangements)
