"""Keys of passages."""

from dataclasses import replace

from metasearch.data.documents.passage import Passage
from metasearch.retrieval.index.keys import keys_of

ONE = Passage("a text", "a.txt", 1, "de")


def test_a_key_is_of_text_and_language_and_not_of_the_place():
    keys = keys_of([ONE, replace(ONE, file="b.txt", line=9), replace(ONE, text="b"), replace(ONE, language="tr")])
    assert keys.shape == (4, 16)
    assert len({key.tobytes() for key in keys}) == 3
    assert (keys[0] == keys[1]).all()


def test_what_else_a_vector_depends_on_changes_all_keys():
    assert (keys_of([ONE], "x") != keys_of([ONE], "y")).any()


def test_no_two_ways_to_cut_the_parts_have_the_same_key():
    keys = [keys_of([replace(ONE, text="e3:abc", language="d")]), keys_of([replace(ONE, text="abc", language="de3:")])]
    assert (keys[0] != keys[1]).any()
