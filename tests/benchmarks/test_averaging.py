"""Weighted means of weights: the formula to the last bit, the ends, and encoders of different form."""

import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mini.averaging import average, main
from helpers.backbones import make
from metasearch.encoders.builtin import tiny
from metasearch.encoders.open import open_checkpoint

number = st.floats(-(2.0**100), 2.0**100, width=32)
weights = st.lists(number, min_size=3, max_size=3).map(lambda values: torch.tensor(values, dtype=torch.float32))


def bits(tensor):
    return tensor.view(torch.int32).tolist()


@given(weights, weights, st.floats(0.001, 0.999))
def test_the_mean_is_one_less_share_times_the_first_and_share_times_the_second_rounded_once(first, second, share):
    mean = average({"w": first}, {"w": second}, share)["w"]
    by_hand = [(1 - share) * a + share * b for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    # Python's numbers are float64, and the tensor rounds each to float32 as it is made.
    assert bits(mean) == bits(torch.tensor(by_hand, dtype=torch.float32))


@given(weights, weights)
def test_share_0_gives_the_first_and_share_1_the_second_bit_for_bit(first, second):
    first[0] = -0.0  # of which 1·(−0) + 0·x has another sign
    assert bits(average({"w": first}, {"w": second}, 0)["w"]) == bits(first)
    assert bits(average({"w": second}, {"w": first}, 1)["w"]) == bits(first)


def test_integers_are_those_of_the_first():
    ids = torch.arange(3)
    mean = average({"ids": ids, "w": torch.zeros(1)}, {"ids": ids + 1, "w": torch.ones(1)}, 0.5)
    assert torch.equal(mean["ids"], ids)
    assert mean["w"].tolist() == [0.5]


def run(first, second, output):
    return CliRunner().invoke(main, [str(first), str(second), "--share", "0.25", "-o", str(output)])


@pytest.mark.slow
def test_a_quarter_of_the_way_between_two_encoders(tmp_path):
    for seed in range(2):
        tiny.build(seed=seed).write(tmp_path / f"{seed}")
    done = run(tmp_path / "0", tmp_path / "1", tmp_path / "made")
    assert done.exit_code == 0, done.output
    first, second, made = (open_checkpoint(str(tmp_path / name)).model.state_dict() for name in ("0", "1", "made"))
    for name, weight in made.items():
        expected = (0.75 * first[name].double() + 0.25 * second[name].double()).float()
        assert torch.equal(weight, expected if weight.is_floating_point() else first[name]), name


def differing(kind):
    """Return an encoder that differs from `make("xlm-roberta")` in one thing."""
    encoder = make("xlm-roberta", layers=4 if kind == "layers" else 6)
    if kind == "prompts":
        encoder.model.prompts = {**encoder.model.prompts, "query": "ask: "}
    if kind == "pooling":
        encoder.model[1].pooling_mode = "cls"
    if kind == "tokenizer":
        encoder.model.tokenizer.add_tokens(["metasearch"])
    return encoder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["layers", "pooling", "prompts", "tokenizer"])
def test_encoders_that_differ_in_more_than_weights_are_refused(kind, tmp_path):
    make("xlm-roberta").write(tmp_path / "one")
    differing(kind).write(tmp_path / "other")
    done = run(tmp_path / "one", tmp_path / "other", tmp_path / "made")
    assert done.exit_code == 6
    assert "differ in architecture, tokenizer or prompts" in done.output
    assert not (tmp_path / "made").exists()
