"""Weighted means of weights: the formula to the last bit, the ends, and encoders of different form."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.modules import Dense

from helpers.backbones import make
from metasearch.errors import EncoderError
from metasearch.pipelines.merge import average, require_same_form, resolve_shares

number = st.floats(-(2.0**100), 2.0**100, width=32)
weights = st.lists(number, min_size=3, max_size=3).map(lambda values: torch.tensor(values, dtype=torch.float32))


def bits(tensor):
    return tensor.view(torch.int32).tolist()


@given(weights, weights, st.floats(0.001, 0.999))
def test_two_give_one_less_alpha_times_the_first_and_alpha_times_the_second_rounded_once(first, second, alpha):
    merged = average([(1 - alpha, {"w": first}), (alpha, {"w": second})])["w"]
    by_hand = [(1 - alpha) * a + alpha * b for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    # Python's numbers are float64, and the tensor rounds each to float32 as it is made.
    assert bits(merged) == bits(torch.tensor(by_hand, dtype=torch.float32))


@given(weights, weights)
def test_alpha_0_gives_the_first_and_alpha_1_the_second_bit_for_bit(first, second):
    first[0] = -0.0  # of which 1·(−0) + 0·x has another sign
    assert bits(average([(1.0, {"w": first}), (0.0, {"w": second})])["w"]) == bits(first)
    assert bits(average([(0.0, {"w": second}), (1.0, {"w": first})])["w"]) == bits(first)


def test_what_is_no_floating_point_number_is_that_of_the_first():
    ids = torch.arange(3)
    merged = average([(0.5, {"ids": ids, "w": torch.zeros(1)}), (0.5, {"ids": ids, "w": torch.ones(1)})])
    assert torch.equal(merged["ids"], ids)
    assert merged["w"].tolist() == [0.5]


def test_shares_follow_alpha_or_are_equal():
    assert resolve_shares(2, 0.25) == (0.75, 0.25)
    assert resolve_shares(4, None) == (0.25,) * 4


def differing(kind):
    """Return an encoder that differs from `make("xlm-roberta")` in one thing."""
    encoder = make(kind if kind in ("roberta", "bert") else "xlm-roberta", layers=4 if kind == "layers" else 6)
    if kind == "prompts":
        encoder.model.prompts = {**encoder.model.prompts, "query": "ask: "}
    if kind == "module":
        encoder.model.insert(2, Dense(16, 16))
    if kind == "pooling":
        encoder.model[1].pooling_mode = "cls"
    if kind == "tokenizer":
        encoder.model.tokenizer.add_tokens(["metasearch"])
    return encoder


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("roberta", "architecture: "),
        ("bert", "architecture: "),
        ("layers", "architecture: num_hidden_layers: 6 and 4"),
        ("module", 'modules: 2: "Normalize" and "Dense"'),
        ("pooling", "module 1 (Pooling): "),
        ("prompts", "prompts: query: "),
        ("tokenizer", "tokenizer: added_tokens"),
    ],
)
def test_the_first_difference_of_two_encoders_is_named(kind, message):
    one, other = make("xlm-roberta"), differing(kind)
    with pytest.raises(EncoderError, match="cannot be merged") as caught:
        require_same_form(one, other)
    assert message in str(caught.value)
