"""A long text is cut before it is tokenised: the same tokens, for the cost of those that are read."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.tokenizers import TOKENIZERS, WORDS, around
from metasearch.encoders.lengths import shorten
from metasearch.encoders.load import load_encoder

PARTS = [*WORDS, "x" * 40, "中中中", "keys,house.", "🗝️"]
GAPS = [" ", "  ", "\n", "\t", " " * 90]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokens_are_those_of_the_whole_text(kind, side):
    encoder = around(kind)
    tokenizer = encoder.model.tokenizer
    tokenizer.truncation_side = side

    draw = random.Random(0)
    for limit in range(4, 31, 2):
        text = "".join(draw.choice(PARTS) + draw.choice(GAPS) for _ in range(draw.randrange(60, 90)))
        whole = tokenizer([text], truncation=True, max_length=limit)["input_ids"]
        assert encoder.input.tokenise([text], limit)["input_ids"] == whole


def characters(text):
    """Return one token for every letter; white space is none."""
    return len(text.replace(" ", ""))


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=5), st.integers(1, 20), st.booleans())
def test_enough_is_left_of_a_text_and_not_much_more(runs, limit, left):
    """Words and gaps have random lengths. The shortened text is a prefix or suffix with more tokens than the limit."""
    text = "".join("x" * letters + " " * spaces for letters, spaces in runs)
    read = []

    def tokenise(texts, most):
        read.extend(len(each) for each in texts)
        return [range(min(characters(each), most)) for each in texts]

    (found,) = shorten([text], limit, left, tokenise)
    assert text.endswith(found) if left else text.startswith(found)
    assert found == text or characters(found) > limit
    # A white space that is skipped makes the window twice as large each time.
    gap = max([spaces for _, spaces in runs], default=0)
    assert sum(read) <= 4 * (8 * (limit + 16) + sum(spaces for _, spaces in runs) + gap)


@pytest.mark.parametrize("name", ["mini", "tiny"])
def test_a_long_text_counts_as_cut_and_as_so_many_tokens_as_are_read(name):
    encoder = load_encoder(name, device="cpu")
    limit = encoder.limit("question")
    for words in (1, 100, 5_000):
        text = "key " * words
        whole = len(encoder.model.tokenizer([encoder.prompt("question") + text])["input_ids"][0])
        assert encoder.is_truncated([text], "question").tolist() == [whole > limit]
        assert encoder.lengths([text], "question").tolist() == [min(whole, limit)]
