"""Threads share torch's generator: each draws what it draws alone."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from helpers.sharded import CASES, weights_after
from metasearch import load_encoder, make_student
from metasearch.encoders.builtin import tiny
from metasearch.encoders.random_state import seeded


def numbers(seed):
    with seeded(seed):
        first = torch.rand(3)
        time.sleep(0.01)  # another thread gets its turn
        return torch.cat([first, torch.rand(3)]).tolist()


def student(seed):
    made = make_student(load_encoder("tiny", seed=seed), bottleneck=8, initial="random", seed=seed)
    return torch.cat([weight.flatten() for weight in made.model.parameters()]).tolist()


def trained(seed):
    """Return a digest of the weights after steps with dropout."""
    return weights_after(CASES[0])


@pytest.mark.parametrize("work", [numbers, student, trained])
def test_threads_draw_what_each_draws_alone(work):
    alone = [work(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(4))] == alone


def test_the_numbers_of_the_caller_go_on():
    torch.manual_seed(5)
    expected = torch.rand(2).tolist()
    torch.manual_seed(5)
    with seeded(1):
        torch.rand(7)
    tiny.build(seed=555)  # of no other test
    assert torch.rand(2).tolist() == expected
