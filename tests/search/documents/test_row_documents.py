"""JSON lines and tables: columns, quotes, line numbers, and what is wrong with them."""

import csv
import json
from decimal import Decimal

import pytest

from helpers.passages import passages_of, shown
from metasearch.data.formats import text_files
from metasearch.data.formats.text_files import LONGEST_ROW
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
    assert caplog.messages == [f"{tmp_path}/{name}: rows without text, skipped: 2"]


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
    monkeypatch.setattr(text_files, "LONGEST_ROW", 50)
    first = '{"text": "a"}\n' if name == "a.jsonl" and line == 2 else ""
    with pytest.raises(DataError, match=rf"{name}:{line}: the line has more than 50 bytes"):
        shown(tmp_path / name, first + text.removeprefix("text\n") if first else text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"text": 1}', "text: expected a text, got 1"),
        ('{"text": "a", "title": ["b"]}', "title: expected a text, got ['b']"),
        ('{"text": "\\ud800"}', "text: expected a text, got half a surrogate pair, U+D800"),
        ('{"text": "a"', "not JSON: Expecting ',' delimiter at column 13"),
        ('{"txt": "b"}', "no column 'text'. Did you mean 'txt'? Known: txt. --column names the column with the text"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_with_its_line_and_the_others_are_read(content, says, tmp_path, caplog):
    assert [text for _, text in shown(tmp_path / "a.jsonl", f'{content}\n{{"text": "b"}}')] == ["b"]
    assert caplog.messages == [f"row skipped: {tmp_path}/a.jsonl:1: {says}"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"txt": "b"}\n\n{}', ":1: no column 'text'. Did you mean 'txt'? Known: txt."),
        ("a.csv", "title,txt\na,b\n", ":1: no column 'text'. Did you mean 'txt'? Known: "),
        ("a.csv", 'text\n"a\nb\nc', ":2: not CSV: unexpected end of data"),
    ],
)
def test_a_document_of_rows_that_cannot_be_read_is_an_error(name, content, says, tmp_path):
    with pytest.raises(DataError) as caught:
        shown(tmp_path / name, content)
    assert str(caught.value).startswith(f"{tmp_path}/{name}{says}")


@pytest.mark.parametrize("damaged", [20, 21, 300])
def test_of_very_many_rows_that_cannot_be_read_the_first_are_named_and_the_others_counted(damaged, tmp_path, caplog):
    assert shown(tmp_path / "a.jsonl", "x\n" * damaged + '{"text": "a"}') == [(damaged + 1, "a")]
    rest = [f"rows skipped: {tmp_path}/a.jsonl: {damaged - 20} more"] if damaged > 20 else []
    assert [message.split(": not JSON")[0] for message in caplog.messages] == [
        *(f"row skipped: {tmp_path}/a.jsonl:{line}" for line in range(1, 21)),
        *rest,
    ]


def test_a_quote_that_never_ends_is_refused(tmp_path):
    before = csv.field_size_limit(50)
    try:
        with pytest.raises(DataError, match=r"a\.csv:2: not CSV: field larger than field limit \(50\)"):
            shown(tmp_path / "a.csv", 'text\n"' + "abc\n" * 20)
    finally:
        csv.field_size_limit(before)
    assert before == LONGEST_ROW


def test_durations_decimals_and_names_of_a_table_are_fields(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    columns = {
        "text": arrow.array(["a"]),
        "took": arrow.array([90_500], arrow.duration("ms")),
        "price": arrow.array([Decimal("1.50")], arrow.decimal256(60, 2)),
        "at": arrow.array([3600], arrow.time32("s")),
        "kind": arrow.array(["b"]).dictionary_encode(),
        "uid": arrow.ExtensionArray.from_storage(arrow.uuid(), arrow.array([bytes(16)], arrow.binary(16))),
    }
    path = tmp_path / "a.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    (passage,) = passages_of(path, path.read_bytes())
    uid = "00000000-0000-0000-0000-000000000000"
    assert passage.fields == {"took": 90.5, "price": 1.5, "at": "01:00:00", "kind": "b", "uid": uid}
