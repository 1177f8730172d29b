"""Labels that name pages: click logs, lists of pages, and the passages that become their documents."""

import pytest

from metasearch.data.documents.passage import Passage
from metasearch.data.label_pages import join_pages
from metasearch.data.labels import load_labels
from metasearch.errors import DataError

FOOTER = "Was this helpful?"
PASSAGES = [
    Passage("Print the label.", "site/returns.html", 1, "en"),
    Passage("Drop it off.", "site/returns.html", 5, "en"),
    Passage(FOOTER, "site/returns.html", 9, "en"),
    Passage("Wir öffnen um neun.", "site/zeiten.html", 1, "de"),
    Passage(FOOTER, "site/zeiten.html", 5, "en"),
]


def row(query, page, **more):
    return {"query": query, "page": page, "language": "en", **more}


def join(*rows):
    return join_pages(load_labels(rows, named=True), PASSAGES, ["site"])


def answers(data):
    return {(question, each.text) for each in data.candidates for question in each.answers}


def test_a_page_answers_with_its_passages_in_their_languages_but_not_with_what_other_pages_hold_too():
    data = join(row("return", "returns.html"), row("hours", "https://example.org/zeiten"))
    assert answers(data) == {("q1", "Print the label."), ("q1", "Drop it off."), ("q2", "Wir öffnen um neun.")}
    assert {each.text: each.language for each in data.candidates}["Wir öffnen um neun."] == "de"
    # Passages of one page are one group; the footer joins no groups.
    assert len({question.group for question in data.questions}) == len(data.groups) == 2
    assert data.notes[-2:] == (
        "joined to pages: 2 of 2 labels (path 1, address 1)",
        "passages of labelled pages that stand on other pages, too, and are no answers: 2",
    )


def test_a_page_that_is_on_another_page_as_a_whole_keeps_its_passages():
    data = load_labels([row("return", "a.md")], named=True)
    copies = [Passage("Print.", name, 1, "en") for name in ("a.md", "b.md")]
    assert answers(join_pages(data, copies, [])) == {("q1", "Print.")}


@pytest.mark.parametrize(
    "labels",
    [
        [row("return", ["returns.html", "zeiten.html"])],
        [{"query": "return", "language": "en", "document": ["returns.html", "zeiten.html"]}],
        [{"query": "return", "language": "en", "pages": ["returns.html", "zeiten.html"]}],
        [row("return", "returns.html"), {"query": "return", "language": "en", "path": "zeiten"}],
        [{"query": "return", "language": "en", "url": "//example.org/returns"}, row("return", "zeiten")],
    ],
)
def test_a_query_may_accept_several_pages(labels):
    assert {text for _, text in answers(join(*labels))} == {"Print the label.", "Drop it off.", "Wir öffnen um neun."}


def test_clicks_weigh_and_a_page_with_a_tenth_of_the_clicks_of_another_is_left_out():
    often, rarely = [row("return", "returns.html")] * 20, [row("return", "zeiten.html")] * 2
    data = join(*often, *rarely, row("hours", "zeiten.html"), row("hours", "zeiten.html#top"))
    assert answers(data) == {("q1", "Print the label."), ("q1", "Drop it off."), ("q2", "Wir öffnen um neun.")}
    assert data.grades == {("q1", "p1"): 20.0, ("q1", "p2"): 20.0, ("q2", "p4"): 2.0}
    assert data.notes[0] == (
        "clicks: 24 on 3 pairs of query and page, which weigh by their clicks; left out: 1 pairs (2 clicks) with a "
        "tenth of another page's or less"
    )
    assert len(answers(join(*often[:19], *rarely))) == 3  # 2 of 19 are more than a tenth


def test_judgements_are_no_clicks():
    data = join(row("return", "returns.html", relevance=2), row("return", "zeiten.html", relevance=0))
    assert data.grades == {("q1", "p1"): 2.0, ("q1", "p2"): 2.0, ("q1", "p4"): 0.0}


def test_pages_that_are_not_found_are_left_out_and_named():
    data = join(row("return", "returns.html"), row("open", "zeit.html"))
    assert [question.text for question in data.questions] == ["return"]
    assert data.notes[-3] == (
        "joined to pages: 1 of 2 labels (path 1); not joined: 1: row 2 'zeit.html' (nearest: zeiten.html)"
    )
    assert data.notes[-1] == "skipped queries whose pages are not found: 1"
    with pytest.raises(DataError, match=r"joined to pages: 0 of 1 labels; not joined: 1: row 1 'a\.html'"):
        join(row("return", "a.html"))


@pytest.mark.parametrize(
    ("document", "what"),
    [("https://example.org/help/a.html", "an address"), ("help/a.html", "a path")],
)
def test_names_taken_for_texts_are_an_error_that_shows_the_option(document, what, tmp_path):
    (tmp_path / "labels.csv").write_text(f"query,document\na,{document}\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=rf"labels\.csv:2: document '{document}' is {what}; with --documents FOLDER it is joined"
    ):
        load_labels(tmp_path / "labels.csv")


def test_a_few_names_among_texts_are_texts_and_counted():
    data = load_labels([{"query": each, "document": each, "language": "en"} for each in ("Yes", "No", "a.html")])
    assert len(data.candidates) == 3
    assert data.notes == ("documents that are a name of a page, taken as texts: 1, the first in row 3",)


def test_a_column_that_is_asked_for_comes_before_document():
    labels = [{"query": "return", "document": "Print it.", "link": "zeiten.html", "language": "en"}]
    data = join_pages(load_labels(labels, {"page": "link"}, named=True), PASSAGES, ["site"])
    assert answers(data) == {("q1", "Wir öffnen um neun.")}
    assert data.notes[0] == "columns that are not read: document"
