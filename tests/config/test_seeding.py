"""Random streams are named."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.config.seeding import seed_of, stream

seeds = st.integers(0, 2**32)
names = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5) | st.integers(0, 99), max_size=3)


@given(seeds, names)
def test_a_stream_is_a_function_of_its_seed_and_names(seed, path):
    first, again = stream(seed, *path), stream(seed, *path)
    assert first.integers(2**32, size=4).tolist() == again.integers(2**32, size=4).tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, "ab"), (1, "a", "b")),
        ((1, 2), (12,)),
        ((1, "2", 3), (1, 23)),
        ((1,), (1, "")),
        ((1, "a", "b"), (1, "b", "a")),
    ],
)
def test_names_do_not_run_together(one, other):
    assert seed_of(*one) != seed_of(*other)


def test_a_seed_is_63_bits_of_a_hash_of_its_names_and_so_the_same_in_every_process():
    hashed = hashlib.sha256(b"3\x1fmeta-train\x1f17").digest()
    assert seed_of(3, "meta-train", 17) == int.from_bytes(hashed[:8], "big") // 2
