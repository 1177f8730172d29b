"""What an episode of a similarity task is made of (MAML-Align paper, section 4.2)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.corpus import episodes_of, similarity

ENGLISH = "en_en -> ar_en -> en_{ar,en,es}"


def shares(found):
    return Counter(pair.pair for pair in found.examples)


def test_a_set_in_several_languages_takes_them_in_turn():
    x, y, z = episodes_of(similarity(), ENGLISH, k=8, q=7).episode(0).sets
    assert shares(x) == {"en-en": 8}
    assert shares(y) == {"ar-en": 7}
    assert shares(z) == {"ar-en": 3, "en-en": 2, "es-en": 2}  # 7 = 3 + 2 + 2, in the order written
    assert [pair.pair for pair in z.examples][:4] == ["ar-en", "en-en", "es-en", "ar-en"]


@pytest.mark.parametrize("written", ["ar_en -> ar_en", "en_ar -> en_ar"])
def test_the_order_of_two_languages_does_not_matter(written):
    episode = episodes_of(similarity(rows=4), written, k=4, q=4).episode(0)
    for found in episode.sets:
        assert {pair.group for pair in found.examples} == {f"row {i}" for i in range(4)}
        assert {pair.languages for pair in found.examples} == {("ar", "en"), ("en", "ar")}


@given(rows=st.integers(2, 12), seed=st.integers(0, 99), data=st.data())
def test_no_pair_is_drawn_twice_in_a_set(rows, seed, data):
    size = data.draw(st.integers(1, rows))
    for found in episodes_of(similarity(rows), ENGLISH, seed=seed, k=size, q=size).episode(0).sets:
        assert len(set(found.examples)) == len(found.examples) == size
