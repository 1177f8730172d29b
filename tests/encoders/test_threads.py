"""Threads that share an encoder get the tokens that one thread gets."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from metasearch.config.roles import MaxLength
from metasearch.encoders.load import load_encoder
from metasearch.search.inference.open import load_reader

LIMITS = {"question": 48, "candidate": 64}


@pytest.mark.parametrize("load", [load_encoder, load_reader])
def test_threads_truncate_a_text_at_the_length_of_its_own_role(load):
    encoder = load("mini", device="cpu")
    encoder.max_length = MaxLength(**LIMITS, text=64)
    text = "the key lies under the mat " * 12  # more than 64 tokens

    def excess(i):
        role = ("question", "candidate")[i % 2]
        return encoder.lengths([f"{i} {text}"], role)[0] - LIMITS[role]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(excess, range(200)))
    finally:
        sys.setswitchinterval(interval)
    assert not any(found)
