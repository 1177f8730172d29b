"""A key that is duplicated in an object of JSON is refused: Python takes the last one without a word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.formats import copy, read
from metasearch.data.entailment import read_entailment
from metasearch.data.formats.strict_json import RepeatedKey, parse
from metasearch.errors import DataError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_json_whose_keys_stand_once_is_what_python_reads(value):
    assert parse(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' is duplicated"),
        ('{"a": 1, "b": 0, "\\u0061": 1}', "the key 'a' is duplicated"),
        ('{"a": {"b": [0, {"c": 1, "c": 1}]}}', "a.b[1]: the key 'c' is duplicated"),
        ('[[{"": 1, "": 2}]]', "[0][0]: the key '' is duplicated"),
        # The first value of `a`, in which `b` is duplicated, is itself the one that Python loses.
        ('{"a": {"b": 1, "b": 2}, "a": 1}', "the key 'a' is duplicated"),
    ],
)
def test_a_repeated_key_is_named_with_its_object(text, says):
    with pytest.raises(RepeatedKey) as caught:
        parse(text)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("form", "name", "old", "new", "says"),
    [
        (
            "xquad-r",
            "el.json",
            '"id": "q-wax"',
            '"id": "q-wax", "id": "q"',
            ": data[0].paragraphs[1].qas[0]: the key 'id'",
        ),
        (
            "jsonl-paragraphs",
            "de.jsonl",
            '"answer": 1',
            '"answer": 1, "answer": 0',
            ":1: questions[0]: the key 'answer'",
        ),
    ],
)
def test_a_reader_refuses_it_with_file_and_place(form, name, old, new, says, tmp_path):
    path = copy(form, tmp_path) / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(form, path.parent)
    assert str(caught.value) == f"{path}{says} is duplicated"


def test_an_entailment_pair_with_it_is_dropped_and_counted(tmp_path):
    path = tmp_path / "nli.jsonl"
    sound = '{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n'
    path.write_text(sound + sound.replace("{", '{"gold_label": "entailment", '), encoding="utf-8")
    report = read_entailment([path]).report
    assert report.describe() == "2 lines read, 1 kept; dropped: 1 the key 'gold_label' is duplicated"
    assert report.examples == [f"{path}:2: the key 'gold_label' is duplicated"]
