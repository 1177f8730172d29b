"""Rows of labels that name pages: click logs, and lists of pages."""

import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"relevance": "1,000"}, "row 1: relevance: .* a valid number, .*got '1,000'"),  # perhaps a thousand
        ({"document": ["a.html", 7.5]}, "row 1: document: input should be a valid string, got '7.5'"),
        ({"clicks": 0}, "^row 1: no row has clicks above 0"),
    ],
)
def test_a_value_that_is_no_label_is_an_error(given, says):
    with pytest.raises(DataError, match=says):
        load({"query": "return", "language": "en", "document": "a.html", **given})


@given(st.integers(2, 10**7), st.sampled_from([",", ".", " ", "\u202f", "'", ""]))
def test_a_count_has_marks_of_thousands_or_is_an_error(clicks, mark):
    written = f"{clicks:,}".replace(",", mark)
    log = {**row("return", "a.html"), "clicks": written}
    if mark == "." and 1000 <= clicks < 10**6:
        with pytest.raises(DataError, match=f"row 1: clicks: .*may be {clicks}"):
            load(log)
    else:
        assert load(log).grades == {("q1", "d1"): clicks}


def test_an_empty_list_is_a_row_without_a_document():
    data = load(row("return", "a.html"), row("hours", []))
    assert data.notes == ("skipped rows without a text: 1, the first: row 2: page: expected a text, got nothing",)


def test_rows_of_a_click_log_weigh_by_their_number():
    data = load(*[row("return", "a.html")] * 20, row("return", "b.html"), row("hours", "b.html"))
    assert data.grades == {("q1", "d1"): 20.0}
    assert data.clicks == {("q1", "d1"), ("q1", "d2"), ("q2", "d2")}


@pytest.mark.parametrize("column", ["clicks", "Clicks", "nb_visits", "Pageviews", "count"])
def test_a_column_of_a_log_has_the_number_of_clicks_and_pages_without_a_click_are_no_labels(column):
    counted = {"a.html": "1,200", "b.html": "30", "c.html": "0"}
    data = load(*({**row("return", page), column: count} for page, count in counted.items()), row("hours", "a.html"))
    assert answers(data) == {("q1", "a.html"), ("q1", "b.html"), ("q2", "a.html")}
    assert data.grades == {("q1", "d1"): 1200.0, ("q1", "d2"): 30.0}
    assert data.notes == ("pages without a click, which are no labels: 1, the first in row 3",)


@given(st.sampled_from(["http", "https"]), st.sampled_from(["", "www."]), st.sampled_from(["", "#top"]), st.booleans())
def test_spellings_of_an_address_are_one_page_before_they_are_counted(scheme, host, end, tracked):
    pages = ["https://example.org/a", f"{scheme}://{host}example.org//a{'?gclid=1&utm_source=b' * tracked}{end}"]
    data = load(*(row("return", page) for page in pages))
    assert answers(data) == {("q1", "https://example.org/a")}
    assert data.grades == {("q1", "d1"): 2.0}


def test_a_repeated_column_that_nobody_reads_is_no_error(tmp_path):
    (tmp_path / "labels.csv").write_text("query,page,language,note,note\na,a.md,en,x,y\n", encoding="utf-8")
    assert answers(load_labels(tmp_path / "labels.csv", named=True)) == {("q1", "a.md")}
    (tmp_path / "labels.csv").write_text("query,page,language,page\na,a.md,en,b.md\n", encoding="utf-8")
    with pytest.raises(DataError, match="the header names the column 'page' twice"):
        load_labels(tmp_path / "labels.csv", named=True)


def write_workbook(path, change):
    book = pytest.importorskip("openpyxl").Workbook()
    sheet = book.active
    for cells in (
        ("query", "page", "language"),
        ("return", "open", "en"),
        (None, "b.md", None),
        ("hours", "c.md", "en"),
    ):
        sheet.append(cells)
    change(sheet)
    book.save(path)


@pytest.mark.parametrize("formula", [False, True])
def test_the_address_behind_a_cell_is_its_page_and_a_query_stays_a_text(formula, tmp_path):
    path = tmp_path / "labels.xlsx"

    def link(sheet):
        sheet["A4"].hyperlink = "https://example.org/c"
        if formula:
            sheet["B2"] = '=HYPERLINK("https://example.org/a", "open")'
        else:
            sheet["B2"].hyperlink = "https://example.org/a"

    write_workbook(path, link)
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    with zipfile.ZipFile(path, "w") as book:  # openpyxl computes no formula
        for name, content in parts.items():
            book.writestr(name, content.replace(b'r="B2"><f>', b'r="B2" t="str"><f>').replace(b"<v />", b"<v>open</v>"))
    data = load_labels(path, named=True)
    assert answers(data) == {("q1", "https://example.org/a"), ("q2", "c.md")}
    assert [question.text for question in data.questions] == ["return", "hours"]


def test_a_merged_cell_holds_for_all_its_rows(tmp_path):
    def merge(sheet):
        sheet.merge_cells("A2:A3")
        sheet.merge_cells("C2:C3")

    write_workbook(tmp_path / "labels.xlsx", merge)
    data = load_labels(tmp_path / "labels.xlsx", named=True)
    assert answers(data) == {("q1", "open"), ("q1", "b.md"), ("q2", "c.md")}


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
