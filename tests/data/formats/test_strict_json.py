"""A key that stands twice in an object of JSON is refused: Python takes the last one without a word."""

import json

from hypothesis import given
from hypothesis import strategies as st

from metasearch.data.formats.strict_json import parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
)


@given(VALUES)
def test_json_whose_keys_stand_once_is_what_python_reads(value):
    assert parse(json.dumps(value)) == value
