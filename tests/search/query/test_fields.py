"""Further fields of rows: kept with passages, returned with hits, and filtered by, before passages are ranked."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.common.documents import read
from helpers.commands import metasearch
from helpers.indexes import Made, expected, found_by, in_postgresql, made, queries, write_index
from helpers.passages import passages_of
from helpers.serving import running
from metasearch.errors import ConfigError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes
from metasearch.search.documents.readers.rows import ROUNDED, _further_fields
from metasearch.search.index import fields
from metasearch.search.index.base import Scope, passage_keys
from metasearch.search.index.local import LocalStore
from metasearch.search.indexes import index_documents, open_searcher
from metasearch.search.settings import Condition, parse_conditions

FIELDS = [
    {"price": 9, "topic": "news", "tags": ["a", "b"], "new": True},
    {"price": "10.50", "topic": "News"},
    {"price": 9.0, "topic": "sport", "tags": ["b"], "new": False},
    {"price": "cheap", "more": {"x": 1}},
    {},
]
"""Of five passages; the cells of a CSV file are texts, also `10.50`."""
CONDITIONS = [
    ("price=9", {0, 2}),
    ("price = 9.0", {0, 2}),
    ("price=10.50", {1}),
    ("price=10.5", set()),  # it is a text
    ("price!=9", {1, 3, 4}),
    ("price<10", {0, 2}),
    ("price>9", {1}),
    ("price>=9", {0, 1, 2}),
    ("price<=-1e3", set()),
    ("topic=news", {0}),
    ("tags=b", {0, 2}),
    ("tags!=a", {1, 2, 3, 4}),
    ("new=true", {0}),
    ("new!=true", {1, 2, 3, 4}),
]


def one_word(texts):
    """Cut each text into one word."""
    return [[1] for _ in texts]


def content_with_fields(count=50):
    """Return passages that have the fields above in turn."""
    content = made(count)
    passages = [replace(each, fields=FIELDS[i % 5]) for i, each in enumerate(content.passages)]
    return Made(content.vectors, passages, passage_keys(passages))


@pytest.fixture(scope="module")
def content():
    return content_with_fields()


@pytest.fixture(scope="module")
def store(content, tmp_path_factory):
    return LocalStore.open(write_index(tmp_path_factory.mktemp("fields") / "index", content, portions=3))


def meets(*conditions):
    return parse_conditions([*conditions])


def part_with(content, chosen):
    return content.part([i for i in range(len(content.passages)) if i % 5 in chosen])


@pytest.mark.parametrize(("where", "chosen"), CONDITIONS, ids=[where for where, _ in CONDITIONS])
def test_the_best_of_the_passages_that_meet_a_condition_are_found(content, store, where, chosen):
    asked, inside = queries(), part_with(content, chosen)
    for languages in ((), ("de", "tr")):
        found = found_by(store, asked, 7, languages, where=meets(where))
        for own, arithmetic in zip(found, expected(inside, asked, 7, languages), strict=True):
            assert [text for text, _ in own] == [text for text, _ in arithmetic]
    assert store.rows_in([], meets(where)).tolist() == [i % 5 in chosen for i in range(50)]


def test_all_conditions_hold_and_each_group_has_its_own_best(content, store):
    groups = store.search(queries(), 4, [["de"], ["el"]], where=meets("price>=9", "topic!=news"))
    for tag, (rows, scores) in zip(("de", "el"), groups, strict=True):
        arithmetic = expected(part_with(content, {1, 2}), queries(), 4, [tag])
        for own, of, wanted in zip(rows, scores, arithmetic, strict=True):
            found = store.passages(own)
            assert [passage.text for passage, _ in found] == [text for text, _ in wanted]
            assert of.tolist() == pytest.approx([score for _, score in wanted], abs=1e-3)
            assert [passage.fields for passage, _ in found] == [FIELDS[row % 5] for row in own]


def test_a_field_that_is_unknown_or_holds_objects_alone_is_named(store):
    with pytest.raises(ConfigError, match=r"no passage has the field 'prize'\. Did you mean 'price'\? Known: more,"):
        store.search(queries(), where=meets("prize<3"))
    with pytest.raises(ConfigError, match="the field 'more' has no text, number or boolean to filter by"):
        store.search(queries(), where=meets("more=1"))


def test_a_copy_in_a_database_gives_conditions_the_same_meaning(content, store, postgres):
    remote = in_postgresql(store, postgres, one_word)
    for where, chosen in CONDITIONS:
        ((rows, _),) = remote.search(queries(1), 50, where=meets(where))
        found = [passage for passage, _ in remote.passages(rows[0])]
        assert {each.text for each in found} == {each.text for each in part_with(content, chosen).passages}, where
        assert all(each.fields in FIELDS for each in found)
        ((words, _),) = remote.search_words(one_word, ["x"], 50, Scope(["de"], meets(where)))
        assert len(words) == sum(each.language == "de" for each in part_with(content, chosen).passages), where
    with pytest.raises(ConfigError, match=r"no passage has the field 'more'\. Known: new, price, tags, topic"):
        remote.search(queries(1), where=meets("more=1"))


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (["price"], "'price': expected NAME=VALUE, or another of != < <= > >="),
        (["=3"], "'=3': expected NAME=VALUE"),
        (["price<ten"], "'price<ten': expected a number after <, got 'ten'"),
        (["price<nan"], "expected a number after <"),
        (["a=" + "x" * 999], "a condition has at most 1,000 characters"),
        ("a=b", "expected a list such as"),
        ({"a": None}, "'a': expected a text, a number or a boolean, got None"),
        ({"a<b": 1}, "'a<b': the name of a field to filter by has none of the characters"),
        ({str(i): i for i in range(33)}, "33 conditions; 32 at most"),
    ],
)
def test_what_is_no_condition_is_named(where, says):
    with pytest.raises(ValueError, match=r".") as caught:
        parse_conditions(where)
    assert says in str(caught.value)


def test_a_mapping_names_values_that_are_equal():
    assert parse_conditions({"a": "x<=y", "b": 3, "c": 0.5, "d": True}) == meets("a=x<=y", "b=3", "c=0.5", "d=true")
    assert meets("a = x<=y ") == (Condition("a", "=", "x<=y"),)
    assert meets("id=1234567890123456789")[0].number == 1234567890123456789
    assert parse_conditions(meets("a=b")) == meets("a=b")


def test_what_columns_hold_is_kept_as_json_holds_it(tmp_path, caplog):
    assert [p.fields for p in passages_of(tmp_path / "a.csv", "id,text,price,language\n7,a,1.10,de\n8,b,,\n")] == [
        {"id": "7", "price": "1.10"}, {"id": "8"},
    ]  # fmt: skip
    row = {
        "text": "a",
        "id": 7,
        "tags": ["x"],
        "more": {"y": None},
        "gone": None,
        "half": "\ud800",
        "long": "x" * 20000,
    }
    (passage,) = passages_of(tmp_path / "a.jsonl", json.dumps(row))
    assert passage.fields == {"id": 7, "tags": ["x"], "more": {"y": None}}
    says = "a.jsonl: fields '{}' over 16,384 bytes or no JSON, dropped: 1"
    assert [message.rpartition("/")[2] for message in caplog.messages] == [says.format("half"), says.format("long")]


def test_rows_of_parquet_and_arrow_files_are_documents(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_pylist(
        [{"text": "a", "day": date(2026, 1, 2), "price": Decimal("1.50"), "stars": float("nan")}, {"text": "b"}]
    )
    (tmp_path / "docs").mkdir()
    parquet.write_table(table, tmp_path / "docs" / "shop.parquet")
    file = tmp_path / "docs" / "data-00000-of-00001.arrow"
    with arrow.OSFile(str(file), "wb") as content, arrow.ipc.new_stream(content, table.schema) as stream:
        stream.write_table(table)
    found = list(read([tmp_path / "docs"]))
    assert [(p.text, p.line, p.fields) for p in found] == 2 * [
        ("a", 1, {"day": "2026-01-02", "price": 1.5}), ("b", 2, {}),
    ]  # fmt: skip


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 9), st.integers(2**52, 2**80))
def test_a_decimal_that_a_float_cannot_hold_is_counted(short, places, half):
    fields = {"short": Decimal(short).scaleb(-places), "even": Decimal(2**70), "odd": Decimal(2 * half + 1)}
    notes = Notes()
    assert _further_fields(fields, Settings(), notes) == {name: float(value) for name, value in fields.items()}
    assert notes.counts == {ROUNDED: 1}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    rows = [{"text": f"a coat for rain {i}", "language": "en", "price": 10 * i, "id": f"c{i}"} for i in range(6)]
    (folder / "shop.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index_documents([folder / "shop.jsonl"], folder / "index", "tiny")
    return folder


def test_hits_of_every_door_meet_the_conditions_and_have_the_fields(shop):
    searcher = open_searcher(shop / "index")
    for how in ({}, {"hybrid": True}, {"balance": True}):
        (hits,) = searcher.search(["rain coat"], top_k=2, where=["price>=30", "id!=c4"], **how)
        assert {(hit.passage.fields["id"], hit.passage.fields["price"]) for hit in hits} == {("c3", 30), ("c5", 50)}
    said = metasearch("search", str(shop / "index"), "rain coat", "--where=price<=10", "--where", "id=c1", "--json")
    (hit,) = json.loads(said.stdout)["hits"]
    assert hit["fields"] == {"id": "c1", "price": 10}
    said = metasearch("search", str(shop / "index"), "rain coat", "--where=prize<=10", code=2)
    assert "no passage has the field 'prize'. Did you mean 'price'? Known: id, price." in said.stderr
    assert "--where" in metasearch("search", str(shop / "index"), "rain", "--where=price", code=2).stderr
    with running(searcher) as server:
        for where in ({"id": "c2"}, ["id=c2", "price<30"]):
            _, answer = server.post("/search", {"query": "rain coat", "where": where})
            assert [hit["fields"] for hit in answer["results"][0]["hits"]] == [{"id": "c2", "price": 20}]
        status, answer = server.post("/search", {"query": "rain coat", "where": {"idd": "c2"}})
        assert (status, answer["error"]["param"]) == (422, "where")
        assert answer["error"]["message"].startswith("where: no passage has the field 'idd'.")


def test_a_row_whose_fields_change_is_a_new_passage(shop):
    content = (shop / "shop.jsonl").read_text(encoding="utf-8").replace('"price": 20', '"price": 21')
    (shop / "shop.jsonl").write_text(content, encoding="utf-8")
    assert index_documents([shop / "shop.jsonl"], shop / "index").encoded == 1
    store = open_searcher(shop / "index").store
    assert [row for row in np.flatnonzero(store.rows_in([], meets("price>20", "price<30")))] == [2]
    assert not store.rows_in([], meets("price=20")).any()


@given(
    st.sampled_from(["zurück", "Ångström", "가방", "plain", "が"]),
    st.sampled_from(["NFC", "NFD"]),
    st.sampled_from(["NFC", "NFD"]),
)
def test_composed_and_decomposed_values_are_equal(value, stored, asked):
    condition = Condition.parse(f"path={normalize(asked, value)}")
    assert fields.meets({"path": normalize(stored, value)}, [condition])
    assert not fields.meets({"path": normalize(stored, value + "x")}, [condition])
