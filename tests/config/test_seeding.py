"""Random streams are named."""

import hashlib

import pytest

from metasearch.config.seeding import seed_of


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
