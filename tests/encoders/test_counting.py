"""Which texts an encoder reads to their end."""

import pytest

from metasearch.encoders.counting import forget, is_cut
from metasearch.jobs.compose import load_encoder
from metasearch.spec.recipe import MaxLength


@pytest.mark.parametrize("name", ["mini", "tiny"])
def test_a_text_of_exactly_as_many_tokens_as_may_be_is_not_cut(name):
    encoder = load_encoder(name, MaxLength(question=9, candidate=12), device="cpu")
    texts = ["word " * count for count in range(1, 30)]
    tokens = [len(row) for row in encoder.input.tokenise(texts, 1000)["input_ids"]]
    for role, limit in (("question", 9), ("candidate", 12)):
        assert is_cut(encoder, texts, role).tolist() == [count > limit for count in tokens]
    assert limit in tokens


def test_what_is_forgotten_is_read_again():
    encoder = load_encoder("tiny", device="cpu")
    before = encoder.encode(["a text"], "text")
    forget(encoder)
    assert encoder._tokens == {}
    assert (encoder.encode(["a text"], "text") == before).all()
