"""A key that stands twice in an object of JSON is refused: Python takes the last one without a word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.data.formats.strict_json import RepeatedKey, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
)


@given(VALUES)
def test_json_whose_keys_stand_once_is_what_python_reads(value):
    assert parse(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": 1, "b": 0, "\\u0061": 1}', "the key 'a' stands twice"),
        ('{"a": {"b": [0, {"c": 1, "c": 1}]}}', "a.b[1]: the key 'c' stands twice"),
        ('[[{"": 1, "": 2}]]', "[0][0]: the key '' stands twice"),
        # The first value of `a`, in which `b` stands twice, is itself the one that Python loses.
        ('{"a": {"b": 1, "b": 2}, "a": 1}', "the key 'a' stands twice"),
    ],
)
def test_a_repeated_key_is_named_with_its_object(text, says):
    with pytest.raises(RepeatedKey) as caught:
        parse(text)
    assert str(caught.value) == says
