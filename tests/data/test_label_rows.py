"""Rows of labels that name pages: click logs, and lists of pages."""

import pytest

from metasearch.config.languages import UNKNOWN
from metasearch.data.labels import load_labels
from metasearch.errors import DataError


def row(query, page, **more):
    return {"query": query, "page": page, "language": "en", **more}


def load(*rows, **more):
    return load_labels(rows, named=True, **more)


def answers(data):
    return {(question, each.text) for each in data.candidates for question in each.answers}


@pytest.mark.parametrize("column", ["page", "url", "path", "document"])
def test_a_document_may_be_the_name_of_a_page_in_no_language(column):
    data = load({"query": "return", column: "returns.html", "language": "en"})
    assert [(each.text, each.language) for each in data.candidates] == [("returns.html", UNKNOWN)]


def test_a_page_may_be_the_number_of_a_row():
    assert answers(load(row("return", 7))) == {("q1", "7")}


@pytest.mark.parametrize("column", ["pages", "page", "document"])
def test_a_query_may_accept_several_documents(column):
    several = {"query": "return", "language": "en", column: ["a.html", "b.html"]}
    assert answers(load(several)) == {("q1", "a.html"), ("q1", "b.html")}
    one = [row("return", "a.html"), row("return", "b.html")]
    assert answers(load(*one)) == answers(load(several))


@pytest.mark.parametrize(("written", "grade"), [("0,5", 0.5), ("2,25", 2.25), ("0,125", 0.125), ("3", 3.0)])
def test_a_relevance_may_have_a_decimal_comma(written, grade):
    assert load(row("return", "a.html", relevance=written)).grades == {("q1", "d1"): grade}


def test_a_comma_that_may_be_of_thousands_is_an_error():
    with pytest.raises(DataError, match=r"row 1: relevance: .* a valid number, .*got '1,000'"):
        load(row("return", "a.html", relevance="1,000"))


def test_an_empty_list_is_a_row_without_a_document():
    data = load(row("return", "a.html"), row("hours", []))
    assert data.notes == ("skipped rows without a text: 1, the first: row 2: page: expected a text, got nothing",)


def test_an_entry_of_a_list_that_is_no_text_is_an_error():
    with pytest.raises(DataError, match=r"row 1: document: input should be a valid string, got '7.5'"):
        load(row("return", ["a.html", 7.5]))


def test_clicks_weigh_and_a_page_with_a_tenth_of_the_clicks_of_another_is_left_out():
    often, rarely = [row("return", "a.html")] * 20, [row("return", "b.html")] * 2
    data = load(*often, *rarely, row("hours", "b.html"), row("hours", "b.html#top"))
    assert answers(data) == {("q1", "a.html"), ("q2", "b.html")}
    assert data.grades == {("q1", "d1"): 20.0, ("q2", "d2"): 2.0}
    assert data.notes == (
        "clicks: 24 on 3 pairs of query and page; nDCG weighs pairs by clicks, and all else takes them alike; left "
        "out: 1 pairs (2 clicks) with a tenth of another page's or less",
    )
    assert ("q1", "b.html") in answers(load(*often[:19], *rarely))  # 2 of 19 are more than a tenth


def test_judgements_are_no_clicks():
    data = load(row("return", "a.html", relevance=2), row("return", "b.html", relevance=0))
    assert data.grades == {("q1", "d1"): 2.0, ("q1", "d2"): 0.0}
    assert not data.notes


@pytest.mark.parametrize(
    ("document", "what"), [("https://example.org/help/a.html", "an address"), ("help/a.html", "a path")]
)
def test_names_taken_for_texts_are_an_error_that_shows_the_option(document, what, tmp_path):
    (tmp_path / "labels.csv").write_text(f"query,document\na,{document}\n", encoding="utf-8")
    said = rf"labels\.csv:2: document '{document}' is {what}; with --documents FOLDER it is joined to its page"
    with pytest.raises(DataError, match=said):
        load_labels(tmp_path / "labels.csv")


def test_a_few_names_among_texts_are_texts_and_counted():
    data = load_labels([{"query": each, "document": each, "language": "en"} for each in ("Yes", "No", "a.html")])
    assert {each.language for each in data.candidates} == {"en"}
    assert data.notes == ("documents that are a name of a page, taken as texts: 1, the first in row 3",)


def test_a_column_that_is_asked_for_comes_before_document():
    data = load({"query": "return", "document": "Print.", "link": "a.md", "language": "en"}, columns={"page": "link"})
    assert answers(data) == {("q1", "a.md")}
    assert data.notes == ("columns that are not read: document",)
