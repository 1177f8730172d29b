"""Several processes share the shards of a step: the same bits for any number of them."""

import json
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest
import torch

from helpers.sharded import CASES, main, weights_after
from helpers.torchrun import forked
from metasearch.runs.torchrun_env import Rank
from metasearch.training.distributed import ProcessGroup

QUICK = [case for case in CASES if str(case) in ("maml-align kd_reduction=sum", "ema")]


def digests(place, count, cases):
    """Return what so many processes come to."""
    out = place / f"{count}.json"
    if count == 1:
        main(out, *map(str, cases))
    else:
        forks = forked(count, lambda: main(out, *map(str, cases)))
        assert [fork.finished()[0] for fork in forks] == [0] * count
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_process_whose_shards_are_all_empty_has_the_values_of_the_others(monkeypatch):
    """As of the last batch of a stage, of which there are fewer examples than shards."""
    group = ProcessGroup()
    monkeypatch.setattr(group, "rank", Rank(0, 2))
    monkeypatch.setattr(group, "_each", lambda own: [own, [{"task": torch.tensor([2.0])}]])
    assert group.gather([{}], torch.device("cpu")) == [{}, {"task": torch.tensor([2.0])}]


class Linked(ProcessGroup):
    """One of four processes in threads of this one, which exchange gradients by queues."""

    def __init__(self, number, boxes):
        self.rank, self.boxes = Rank(number, 4), boxes

    def _swapped(self, gradient, parameters, other):
        self.boxes[self.rank.number, other].put(gradient)
        return self.boxes[other, self.rank.number].get(timeout=60)


def test_gradients_of_four_processes_are_added_along_the_tree_of_their_numbers():
    a, b, c, d = numbers = torch.randn(4, 100, generator=torch.Generator().manual_seed(0))
    boxes = {(one, other): Queue() for one in range(4) for other in range(4)}
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda i: Linked(i, boxes).total([numbers[i], None], []), range(4))
    for total in found:
        assert torch.equal(total[0], (a + b) + (c + d))
        assert total[1] is None
    assert not torch.equal(((a + b) + c) + d, (a + b) + (c + d))  # so the test tells the orders apart


@pytest.mark.slow
def test_two_processes_come_to_the_bits_of_one(tmp_path):
    assert len(QUICK) == 2
    assert digests(tmp_path, 2, QUICK) == digests(tmp_path, 1, QUICK)


@pytest.mark.exhaustive
def test_every_learner_comes_to_the_same_bits_in_one_two_and_four_processes(tmp_path):
    one, two, four = (digests(tmp_path, count, CASES) for count in (1, 2, 4))
    assert len(one) == len(CASES)
    assert two == one
    assert four == one


@pytest.mark.slow
def test_shards_and_dropout_change_bits():
    """So the comparisons above see what they are to see."""
    case = QUICK[0]
    assert len({weights_after(case, dropout=on, shards=count) for on in (True, False) for count in (1, 4)}) == 4
