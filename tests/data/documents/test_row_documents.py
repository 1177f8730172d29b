"""JSON lines and tables: columns, quotes, line numbers, and what is wrong with them."""

import json

import pytest

from helpers.passages import passages_of, shown
from metasearch.data.documents import content
from metasearch.errors import DataError

ROWS = [
    {"id": "1", "title": "Keys", "text": "Where is the key?", "language": "en"},
    {"id": "2", "title": "", "text": "Wo ist der Schlüssel?\nUnter der Matte.", "language": "de_AT"},
    {"id": "3", "title": None, "text": "Ohne Sprache.", "language": None},
]
EXPECTED = [
    ("Keys\nWhere is the key?", "en"),
    ("Wo ist der Schlüssel?\nUnter der Matte.", "de-AT"),
    ("Ohne Sprache.", "tr"),
]


def jsonl(rows):
    """Return rows as JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def table(rows):
    """Return rows as CSV with every cell in quotes."""
    cells = [rows[0].keys(), *(row.values() for row in rows)]
    return "".join(",".join(f'"{cell or ""}"' for cell in row) + "\r\n" for row in cells)


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [("faq.tr.jsonl", jsonl(ROWS), [1, 2, 3]), ("faq.tr.csv", table(ROWS), [2, 3, 5])],
    ids=["jsonl", "csv"],
)
def test_a_row_is_read_with_its_line_title_and_language(name, content, lines, tmp_path):
    seen = passages_of(tmp_path / name, content)
    assert [(p.line, p.text, p.language) for p in seen] == [(n, *row) for n, row in zip(lines, EXPECTED, strict=True)]


def test_a_passage_of_a_cell_has_the_line_it_stands_in(tmp_path):
    text = 'title,text,more\n"a\nb","One.\n\nTwo. ""Q"".\r\nThree.",x\nc,Four.,\n'
    expected = [(3, "One."), (5, 'Two. "Q".'), (6, "Three."), (7, "Four.")]
    assert shown(tmp_path / "a.csv", text, limit=9, titles=False) == expected


@pytest.mark.parametrize(
    ("name", "content"), [("a.jsonl", '{"body": "a"}'), ("a.csv", "body\na"), ("a.tsv", "body\na")]
)
def test_the_column_of_the_text_may_have_another_name(name, content, tmp_path):
    assert [text for _, text in shown(tmp_path / name, content, column="body")] == ["a"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text": null}\n{"text": " \\u200b"}\n{"text": "a"}'),
        ("a.csv", 'text\na\n""\n \u200b\na\n'),
    ],
)
def test_rows_without_text_are_counted_and_equal_ones_are_kept(name, content, tmp_path, caplog):
    assert [text for _, text in shown(tmp_path / name, content)] == ["a", "a"]
    assert caplog.messages == [f"{tmp_path}/{name}: rows without text, left out: 2"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [("a.jsonl", '{"text": "a", "language": "german"}', 1), ("a.csv", 'text,language\n"a\nb",german\n', 2)],
)
def test_a_row_whose_language_is_no_tag_is_read_without_it(name, content, line, tmp_path, caplog):
    (passage,) = passages_of(tmp_path / name, content, language="tr")
    assert passage.language == "tr"
    says = "language: 'german' is not a language tag such as de, fil or zh-CN"
    assert caplog.messages == [f"language ignored: {tmp_path}/{name}:{line}: {says}"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("x" * 60, 1), ("x" * 90 + "\n", 1), ("text\n" + "x" * 60, 2), ("text\n" + "x" * 90 + "\nb\n", 2)],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv"])
def test_a_line_that_never_ends_is_refused(name, text, line, tmp_path, monkeypatch):
    monkeypatch.setattr(content, "LONGEST_ROW", 50)
    monkeypatch.setattr(content, "_SIZE", 20)
    first = '{"text": "a"}\n' if name == "a.jsonl" and line == 2 else ""
    with pytest.raises(DataError, match=rf"{name}:{line}: the line has more than 50 characters"):
        shown(tmp_path / name, first + text.removeprefix("text\n") if first else text)
