"""`metasearch merge` as a user runs it."""

import json

import pytest
import torch

from helpers.commands import metasearch
from metasearch.encoders.builtin import tiny
from metasearch.encoders.open import open_checkpoint


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Three encoders that differ in their weights."""
    folder = tmp_path_factory.mktemp("models")
    for seed in range(3):
        tiny.build(seed=seed).write(folder / f"{seed}")
    return folder


def weights(path):
    return open_checkpoint(str(path)).model.state_dict()


@pytest.mark.slow
def test_half_way_between_two_encoders(models, tmp_path):
    done = metasearch("merge", models / "0", models / "1", "--alpha", 0.25, "-o", tmp_path / "made")
    first, second, made = weights(models / "0"), weights(models / "1"), weights(tmp_path / "made")
    for name, weight in made.items():
        expected = ((1 - 0.25) * first[name].double() + 0.25 * second[name].double()).float()
        assert torch.equal(weight, expected if weight.is_floating_point() else first[name]), name
    assert f"| {models / '1'} |  0.25 |" in done.output
    card = (tmp_path / "made/README.md").read_text(encoding="utf-8")
    assert "0.75 of a local checkpoint" in card
    assert str(models) not in card


@pytest.mark.slow
def test_a_soup_of_three_and_its_parts_as_json(models, tmp_path):
    done = metasearch("merge", *(models / f"{seed}" for seed in range(3)), "-o", tmp_path / "m", "--json")
    told = json.loads(done.stdout)
    assert [part["share"] for part in told["parts"]] == [1 / 3] * 3
    assert told["fingerprint"] == open_checkpoint(str(tmp_path / "m")).fingerprint
