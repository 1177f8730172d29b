"""One reader of rows: the same rows from every kind of source, each with its place."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.files import write
from metasearch.data.formats.rows import read_rows
from metasearch.errors import DataError

ROWS = [{"query": "Where?", "document": "Here, there"}, {"query": "Wo?", "document": 'Say "hier"'}]


QUESTIONS = [{"question": row["query"], "document": row["document"]} for row in ROWS]
LINES = [f"{json.dumps(row)}\n" for row in QUESTIONS]
# What a file of text holds, and the lines of its rows.
TEXT_FILES = {
    "rows.csv": ('question,document\nWhere?,"Here, there"\n\nWo?,"Say ""hier"""\n', (2, 4)),
    "rows.tsv": ('question\tdocument\r\nWhere?\tHere, there\r\nWo?\tSay "hier"\r\n', (2, 3)),
    "rows.jsonl": ("".join(LINES), (1, 2)),
    "rows.jsonl.gz": ("".join(LINES), (1, 2)),
}
ARROW_FILES = {"rows.arrow": "new_stream", "file.arrow": "new_file", "rows.feather": "new_file"}
FOLDERS = ("shards", "saved", "splits")


def write_arrow(path, form="new_stream"):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pylist(QUESTIONS)
    with arrow.OSFile(str(path), "wb") as file, getattr(arrow.ipc, form)(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


def write_dataset(folder):
    """Write the files that `datasets.Dataset.save_to_disk` writes."""
    folder.mkdir(parents=True)
    write_arrow(folder / "data-00000-of-00001.arrow")
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")


def write_shards(path):
    """Write two shards of a table, as a data set of the hub keeps them, and return their paths."""
    (path / "data").mkdir(parents=True)
    (path / "README.md").write_text("# Card", encoding="utf-8")
    return [write(path / "data" / f"train-{i:05}-of-00002.jsonl", LINES[i]) for i in range(2)]


@pytest.fixture(params=[*TEXT_FILES, *ARROW_FILES, "rows.parquet", *FOLDERS, "memory", "frame"])
def source(request, tmp_path):
    path = tmp_path / request.param
    if request.param in TEXT_FILES:
        content, lines = TEXT_FILES[request.param]
        return write(path, content), [f"{path}:{line}" for line in lines]
    if request.param == "shards":
        return path, [f"{name}:1" for name in write_shards(path)]
    if request.param == "memory":
        return QUESTIONS, ["row 1", "row 2"]
    if request.param == "frame":
        return pytest.importorskip("pandas").DataFrame(QUESTIONS), ["row 1", "row 2"]
    if request.param in ARROW_FILES:
        write_arrow(path, ARROW_FILES[request.param])
    elif request.param == "rows.parquet":
        table = pytest.importorskip("pyarrow").Table.from_pylist(QUESTIONS)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif request.param == "saved":
        write_dataset(path)
    else:
        write_dataset(path / "train")
        (path / "dataset_dict.json").write_text('{"splits": ["train"]}', encoding="utf-8")
    return path, [f"{path}: row 1", f"{path}: row 2"]


def test_every_source_gives_the_same_rows_with_their_places_and_names_a_column_that_it_lacks(source):
    rows, places = source
    read = list(read_rows(rows, {"query": "question"}))
    assert [row.values for row in read] == ROWS
    assert [row.place for row in read] == places
    with pytest.raises(DataError, match=r"no column 'questions'\. Did you mean 'question'\?"):
        list(read_rows(rows, {"query": "questions"}))


def test_a_missing_value_is_none_in_every_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query": ["a", "b"], "relevance": [1.0, float("nan")]})
    assert [row.values["relevance"] for row in read_rows(frame)] == [1.0, None]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "x,y\n1,2\n3\n", r"a\.csv:3: expected 2 columns, got 1"),
        ("a.csv", "x;y\n1;2\n3\n", r"a\.csv:3: expected 2 columns, got 1"),
        ("a.csv", 'x\n1\n"2" b\n', r"a\.csv:3: not CSV: ',' expected after '\"'"),
        ("a.csv", 'x\n"1', r"a\.csv:2: not CSV: unexpected end of data"),
        ("a.csv", "x,x\n", r"a\.csv:1: the header names the column 'x' twice"),
        ("a.tsv", "x\ty\n1\t2\t3\n", r"a\.tsv:2: expected 2 columns, got 3"),
        ("a.jsonl", '{"x": 1}\n[2]\n', r"a\.jsonl:2: expected an object in braces, got \[2\]"),
        ("a.jsonl", '{"x": 1}\n{"x"\n', r"a\.jsonl:2: not JSON: Expecting ':' delimiter at column 5"),
        ("a.jsonl", '{"x": 1, "x": 2}\n', r"a\.jsonl:1: the key 'x' is duplicated"),
        ("a.jsonl", "", r"a\.jsonl: the file is empty"),
        ("a.jsonl", '{"x": 1}\n"\0"\n', r"a\.jsonl:2: not UTF-8 text: it has a NUL character"),
        ("a.ods", "x", r"a\.ods: expected rows in \.csv, \.tsv, \.jsonl .* got '\.ods'"),
        ("a.xlsx", "x", r"a\.xlsx: damaged, or no workbook: File is not a zip file"),
        ("a.parquet", "no table", r"a\.parquet: damaged or unreadable"),
        ("a.feather", "FEA1 and more", r"a\.feather: version 1 of Feather is not read; write it as version 2"),
    ],
)
def test_damage_names_file_line_and_value(name, text, message, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_rows(tmp_path / name))


def test_a_damaged_text_of_a_table_is_an_error(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    content = arrow.table({"x": ["text", "ä"]})
    with arrow.OSFile(str(tmp_path / "a.arrow"), "wb") as file, arrow.ipc.new_stream(file, content.schema) as writer:
        writer.write_table(content)
    whole = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(whole.replace("ä".encode(), b"\xff\xff"))
    with pytest.raises(DataError, match=r"a\.arrow: damaged or unreadable: .*UTF8"):
        list(read_rows(tmp_path / "a.arrow"))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.tsv", "x\n1\t2\n1\n", "expected 1 columns, got 2"),
        ("a.csv", 'x\n"1" b\n1\n', """not CSV: ',' expected after '"'"""),
        ("a.jsonl", '{"x": "0"}\n{"x": "0", "x": "2"}\n{"x": "1"}\n', "the key 'x' is duplicated"),
    ],
)
def test_damaged_rows_are_skipped_where_somebody_hears_of_them(name, text, reason, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    heard = []
    rows = list(read_rows(tmp_path / name, damaged=lambda *about: heard.append(about)))
    assert (rows[-1].line, rows[-1].values) == (3, {"x": "1"})
    assert heard == [(f"{tmp_path / name}:2", reason)]


# A way to write a text in a row of each kind of file, below a header if it has one.
FORMS = {
    ".csv": (b"text,n\n", b'"%s",%d\n'),
    ".tsv": (b"text\tn\n", b"%s\t%d\n"),
    ".jsonl": (b"", b'{"text": "%s", "n": %d}\n'),
}


@given(st.sampled_from(sorted(FORMS)), st.lists(st.sampled_from([b"", b"\xfc", b"\xc3", b"\x80", b"\0"]), min_size=1))
def test_a_byte_that_is_no_utf_8_costs_its_row_alone_and_ends_the_reading_where_nobody_hears_of_it(
    tmp_path_factory, kind, damage
):
    header, form = FORMS[kind]
    path = tmp_path_factory.mktemp("bytes") / f"rows{kind}"
    path.write_bytes(
        header + b"".join(form % ("ü".encode() + extra + b"ber das Brot", i) for i, extra in enumerate(damage))
    )
    heard = []
    rows = list(read_rows(path, damaged=lambda *about: heard.append(about)))
    assert [int(row.values["n"]) for row in rows] == [i for i, extra in enumerate(damage) if not extra]
    first = 2 if header else 1
    bad = [(i, extra[0]) for i, extra in enumerate(damage) if extra]
    assert [place for place, _ in heard] == [f"{path}:{first + i}" for i, _ in bad]
    for (_, reason), (_, byte) in zip(heard, bad, strict=True):
        assert reason.startswith(f"not UTF-8: byte {byte:#04x}" if byte else "not UTF-8 text: it has a NUL character")
    if bad:
        with pytest.raises(DataError, match=rf":{first + bad[0][0]}: not UTF-8"):
            list(read_rows(path))


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("cp1251", r":2: not UTF-8: byte 0xe4$"),
        ("utf-32", r":1: not UTF-8: byte 0xff begins UTF-32; convert the file: iconv -f UTF-32 -t UTF-8$"),
        ("cp1252", r":2: not UTF-8: byte 0xfc, perhaps CP1252; convert the file: iconv -f CP1252 -t UTF-8$"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_another_encoding_is_named_with_the_way_to_convert_it(encoding, message, name, tmp_path):
    text = "дверь закрыта" if encoding == "cp1251" else "die Tür ist zu"  # of which the first is not called western
    line = f'"text"\n"{text}"\n' if name == "a.csv" else f'{{"text": "a"}}\n{{"text": "{text}"}}\n'
    (tmp_path / name).write_bytes(line.encode(encoding))
    with pytest.raises(DataError, match=message):
        list(read_rows(tmp_path / name))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_utf_16_with_a_byte_order_mark_is_read(encoding, name, tmp_path):
    mark = "\ufeff" * (encoding == "utf-16-be")  # the codec utf-16 writes one itself
    text = '{"x": "\u010a"}\n{"x": "zwei"}\n' if name == "a.jsonl" else "x\n\u010a\nzwei\n"
    # U+010A has the byte of a line feed.
    (tmp_path / name).write_bytes((mark + text).encode(encoding))
    assert [row.values for row in read_rows(tmp_path / name)] == [{"x": "\u010a"}, {"x": "zwei"}]


def test_damaged_utf_16_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes("x\none\n".encode("utf-16") + b"\x00")
    with pytest.raises(DataError, match=r"a\.csv: damaged UTF-16 after line \d: truncated data"):
        list(read_rows(tmp_path / "a.csv"))


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_header_tells_what_is_between_the_columns_of_a_csv(mark, tmp_path, caplog):
    lines = ["", f"text{mark}score", f'"a; b, c | d\te"{mark}"0,5"', f"e{mark}1"]
    with caplog.at_level("INFO"):
        rows = list(read_rows(write(tmp_path / "a.csv", "\n".join(lines))))
    assert [row.values for row in rows] == [{"text": "a; b, c | d\te", "score": "0,5"}, {"text": "e", "score": "1"}]
    assert [row.line for row in rows] == [3, 4]
    assert ("columns are between" in caplog.text) == (mark != ",")


def write_workbook(path, *sheets):
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_is_its_first_sheet_with_rows_as_texts(tmp_path, caplog):
    labels = [[], ["query", " document ", "relevance"], ["Wo?", "Hier,\r\ndort", 2.0], [], ["Where?", None, 0.5]]
    path = write_workbook(tmp_path / "a.xlsx", ("Empty", []), ("Labels", labels), ("Notes", [["x"]]))
    with caplog.at_level("INFO"):
        rows = list(read_rows(path, {"answer": "document"}))
    assert [row.values for row in rows] == [
        {"query": "Wo?", "answer": "Hier,\ndort", "relevance": "2"},
        {"query": "Where?", "answer": None, "relevance": "0.5"},
    ]
    assert [row.place for row in rows] == [f"{path}: sheet 'Labels', row {number}" for number in (3, 5)]
    assert "sheets that are not read: Notes" in caplog.text


def test_a_cell_of_a_workbook_beside_the_columns_is_named(tmp_path):
    path = write_workbook(tmp_path / "a.xlsx", ("Labels", [["x", "y"], ["1"], ["1", "2", "3"]]))
    with pytest.raises(DataError, match=r"a\.xlsx: sheet 'Labels', row 3: expected 2 columns, got 3"):
        list(read_rows(path))
    with pytest.raises(DataError, match=r"a\.xlsx: sheet 'Labels', row 1: no column 'z'\. Known: x, y\."):
        list(read_rows(path, {"z": "z"}))


def test_a_workbook_without_openpyxl_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"a\.xlsx needs the package openpyxl: pip install 'openpyxl"):
        list(read_rows(tmp_path / "a.xlsx"))


@given(st.sampled_from(["s", "ms", "us", "ns"]), st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1))
def test_a_date_that_python_has_not_costs_neither_its_row_nor_the_others(tmp_path_factory, unit, numbers):
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("dates") / "rows.parquet"
    names = [f"row {i}" for i in range(len(numbers))]
    dates = arrow.array([*numbers, 0], arrow.timestamp("us" if unit == "s" else unit))
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"text": [*names, "last"], "until": dates}), path)
    rows = list(read_rows(path))
    assert [row.values["text"] for row in rows] == [*names, "last"]
    assert rows[-1].values["until"].year == 1970


@given(st.sampled_from(["rows.csv", "rows.parquet"]), st.permutations(["text", "label", "label", "label", "other"]))
def test_a_repeated_column_is_a_list_unless_it_must_be_single(tmp_path_factory, name, names):
    path = tmp_path_factory.mktemp("columns") / name
    cells = [[f"a{i}" for i in range(5)], ["" if each == "label" else "b" for each in names]]
    if name == "rows.csv":
        path.write_text("\n".join(map(",".join, [names, *cells])), encoding="utf-8")
    else:
        arrow = pytest.importorskip("pyarrow")
        columns = [arrow.array([cell or None for cell in column]) for column in zip(*cells, strict=True)]
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_arrays(columns, names=names), path)
    first, second = read_rows(path, {"text": "text"}, single=("text",))
    where = [i for i, each in enumerate(names) if each == "label"]
    assert first.values == {
        "text": f"a{names.index('text')}",
        "other": f"a{names.index('other')}",
        "label": [f"a{i}" for i in where],
    }
    assert second.values == {"text": "b", "other": "b", "label": []}
    for single in (("text", "label"), None):
        with pytest.raises(DataError, match=rf"{name}(:1)?: the header names the column 'label' twice"):
            list(read_rows(path, single=single))


def test_a_data_frame_with_a_repeated_column_is_refused():
    frame = pytest.importorskip("pandas").DataFrame([["a", "b"]], columns=["x", "x"])
    with pytest.raises(DataError, match="rows: the header names the column 'x' twice"):
        list(read_rows(frame))


def test_a_dataset_with_several_splits_asks_which(tmp_path):
    write_dataset(tmp_path / "train")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}', encoding="utf-8")
    with pytest.raises(DataError, match=r"has the splits train, test; name one of them: .*train"):
        list(read_rows(tmp_path))


@pytest.mark.parametrize("rows", [{"query": ["a"]}, 3, b"rows"])
def test_what_are_no_rows_is_said(rows):
    with pytest.raises(DataError, match="expected a list of dicts, a DataFrame, a Dataset or a path; got"):
        list(read_rows(rows))


def test_a_shard_in_a_compressed_form_that_is_not_read_is_named(tmp_path):
    write_shards(tmp_path)
    (tmp_path / "data" / "train-00002-of-00003.jsonl.zst").write_bytes(b"packed")
    with pytest.raises(DataError, match=r"train-00002-of-00003\.jsonl\.zst: \.zst files cannot be read; decompress it"):
        list(read_rows(tmp_path))
