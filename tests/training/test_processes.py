"""Several processes share the shards of a step: the same bits for any number of them."""

import json

import pytest
import torch

from helpers.sharded import CASES, main, weights_after
from helpers.torchrun import by_torchrun
from metasearch.training.processes import Group

QUICK = [case for case in CASES if str(case) in ("maml-align kd_reduction=sum", "distill contrast=soft", "ema")]


def digests(place, count, cases):
    """Return what so many processes come to."""
    out = place / f"{count}.json"
    if count == 1:
        main(out, *map(str, cases))
    else:
        code, _, errors = by_torchrun(count, "helpers.sharded", out, *cases)
        assert code == 0, errors
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_process_whose_shards_are_all_empty_has_the_values_of_the_others(monkeypatch):
    """As of the last batch of a stage, of which there are fewer examples than shards."""
    group = Group.__new__(Group)
    monkeypatch.setattr(group, "_each", lambda own: [own, [[torch.tensor(2.0)]]], raising=False)
    assert group.gather([[]], torch.device("cpu")) == [[], [torch.tensor(2.0)]]


@pytest.mark.slow
def test_two_processes_come_to_the_bits_of_one(tmp_path):
    assert len(QUICK) == 3
    assert digests(tmp_path, 2, QUICK) == digests(tmp_path, 1, QUICK)


@pytest.mark.exhaustive
def test_every_learner_comes_to_the_same_bits_in_one_two_and_four_processes(tmp_path):
    one, two, four = (digests(tmp_path, count, CASES) for count in (1, 2, 4))
    assert len(one) == 2 * len(CASES)
    assert two == one
    assert four == one


@pytest.mark.slow
def test_shards_and_dropout_change_bits():
    """So the comparisons above see what they are to see."""
    case = QUICK[0]
    assert len({weights_after(case, "fast", dropout=on, shards=count) for on in (True, False) for count in (1, 4)}) == 4
