"""Jobs on threads: results in order, errors raised, the same bits with any number of threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Event

import pytest
import torch

from helpers.gradients import Case, encoder_of, outer
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.packing.encoder import PackedEncoder, Workers

SOON = 60
"""Seconds after which a test that waits for another thread gives up."""


class Stand:
    """Stands in for a network; no two tasks may have the same one at the same time."""

    def __init__(self):
        self.busy = False
        self.training = None

    def train(self, mode):
        self.training = mode


def numbers(workers, tasks, most):
    return workers.each(tasks, lambda network, task: 10 * task, most)


@pytest.fixture
def workers():
    return Workers(Stand)


@pytest.fixture
def threads(request):
    """Give operations two threads, or as many as a test says, whatever the tests before have left."""
    before = torch.get_num_threads()
    torch.set_num_threads(getattr(request, "param", 2))
    yield
    torch.set_num_threads(before)


def test_there_is_a_result_for_each_task(workers):
    for most, count in itertools.product((1, 2, 9), (0, 1, 2, 7)):
        assert numbers(workers, range(count), most) == [10 * i for i in range(count)]


def test_results_come_in_order_whichever_is_ready_first(workers):
    """The first task ends when the second has ended."""
    second, ended = Event(), []

    def work(network, task):
        if task == 0:
            assert second.wait(SOON)
        ended.append(task)
        if task == 1:
            second.set()
        return task

    assert workers.each([0, 1, 2], work, 2) == [0, 1, 2]
    assert ended.index(1) < ended.index(0)


@pytest.mark.parametrize("broken", [0, 1, 5])
@pytest.mark.parametrize("most", [1, 2])
def test_the_first_error_is_raised_and_the_workers_go_on(workers, most, broken):
    def work(network, task):
        if task >= broken:
            raise ValueError(f"task {task}")
        return task

    with pytest.raises(ValueError, match=f"task {broken}"):
        workers.each(range(6), work, most)
    assert numbers(workers, range(6), most) == [10 * i for i in range(6)]


@pytest.mark.parametrize("fails", [False, True])
def test_threads_that_are_started_after_the_work_have_as_many_as_the_caller(workers, threads, fails):
    def work(network, task):
        if fails:
            raise ValueError
        return torch.get_num_threads()

    with pytest.raises(ValueError) if fails else nullcontext():
        assert workers.each(range(6), work, 2) == [1] * 6
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 2


def test_threads_of_operations_are_shared_out_and_the_caller_keeps_its_own(threads):
    encoder = encoder_of("bert")
    packed = PackedEncoder(encoder)
    assert packed.workers == 2
    assert PackedEncoder(encoder, workers=3).workers == 3
    assert packed.each([0, 1, 2], lambda network, task: torch.get_num_threads()) == [1, 1, 1]
    assert torch.get_num_threads() == 2
    # One task has them all.
    assert packed.each([0], lambda network, task: torch.get_num_threads()) == [2]


@pytest.mark.parametrize("threads", [1], indirect=True)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "options"),
    [
        (Case("maml"), {"first_order": False}),
        (Case("maml-align", sizes=(3, 2, 2)), {}),
        (Case("reptile"), {}),
        (Case("distill", "translations", (40,)), {}),
    ],
    ids=str,
)
def test_gradients_are_the_same_bits_with_any_number_of_workers(threads, case, options):
    """With one thread for operations. A batch of translations is cut into as many parts as there are workers, so it is
    the same bits each time with the same number of them.
    """
    encoder, episodes = encoder_of("bert", torch.float32), case.episodes(5)
    learner = case.learn(encoder, inner_steps=2, **options)
    found = {}
    for workers in (1, 3):
        gradients = OuterGradients(encoder, workers=workers)
        found[workers] = outer(learner, episodes, gradients)
        again = outer(learner, episodes, gradients)
        assert all(torch.equal(again.dense[name], value) for name, value in found[workers].dense.items())
    if case.learner != "distill":
        assert torch.equal(found[3].loss, found[1].loss)
        assert found[3].dense.keys() == found[1].dense.keys()
        assert all(torch.equal(found[3].dense[name], value) for name, value in found[1].dense.items())


@pytest.mark.slow
def test_with_dropout_there_is_one_worker_and_a_seed_decides():
    encoder, case = encoder_of("bert", torch.float32), Case("maml")
    learner, gradients = case.learn(encoder, inner_steps=2), OuterGradients(encoder, workers=2)
    episodes = case.episodes(3)
    calm = outer(learner, episodes, gradients).loss

    def with_dropout(seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return outer(learner, episodes, gradients)

    learner.train(True)
    try:
        assert gradients.packed.workers == 1
        one, again, other = with_dropout(1), with_dropout(1), with_dropout(2)
    finally:
        learner.train(False)
    assert all(torch.equal(again.dense[name], value) for name, value in one.dense.items())
    assert not torch.equal(one.loss, other.loss)
    assert gradients.packed.workers == 2
    assert torch.equal(outer(learner, episodes, gradients).loss, calm)
    assert not torch.equal(one.loss, calm)


def test_tasks_run_at_the_same_time_on_networks_of_their_own(workers):
    """Each of the first two waits until the other has begun."""
    begun = [Event(), Event()]

    def work(network, task):
        assert not network.busy
        network.busy = True
        if task < 2:
            begun[task].set()
            assert begun[1 - task].wait(SOON)
        network.busy = False
        return network

    found = workers.each(range(6), work, 2)
    assert found[0] is not found[1]
    assert len(set(found)) == 2


def test_nothing_runs_any_more_when_an_error_is_raised(workers):
    """So that no network is in the hands of two."""
    begun, running = Event(), []

    def work(network, task):
        if task == 0:
            assert begun.wait(SOON)
            raise ValueError
        running.append(task)
        begun.set()
        Event().wait(0.2)
        running.remove(task)

    with pytest.raises(ValueError):
        workers.each(range(4), work, 2)
    assert not running


def test_no_more_episodes_begin_than_there_are_workers_before_gradients_are_added(monkeypatch):
    """So that memory does not grow with the number of episodes."""
    case, turns, each = Case("maml"), [], PackedEncoder.each
    monkeypatch.setattr(
        PackedEncoder, "each", lambda self, jobs, work: turns.append(len(jobs)) or each(self, jobs, work)
    )
    learner = case.learn(encoder_of("bert"), inner_steps=1)
    outer(learner, case.episodes(5), OuterGradients(learner.encoder, workers=2))
    assert turns == [2, 2, 1]
