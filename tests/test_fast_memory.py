"""How second-order gradients are taken: as graphs while these fit the memory, and what is known of the memory."""

import logging

import pytest
import torch

from _engines import Case, encoder_of, error, outer
from metasearch.fast import Fast, memory

MAML = Case("maml")
CPU = torch.device("cpu")


@pytest.fixture
def free(monkeypatch):
    """Return a function that sets how much memory is available."""
    return lambda size: monkeypatch.setattr("metasearch.fast.batch.available", lambda device: size)


@pytest.fixture
def container(monkeypatch, tmp_path):
    """Return a function that writes the files of a container's limit; without values there are none."""

    def write(**values):
        for name, value in values.items():
            (tmp_path / f"memory.{name}").write_text(f"{value}\n", encoding="ascii")

    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(memory, "_meminfo", lambda: 5000)
    return write


def way_of(encoder, steps=2, tasks=1, workers=1, **options):
    """Return the way that the engine takes with one weight of 1000 numbers, squared: it keeps that weight."""
    weight = torch.ones(1000, dtype=torch.float64)
    fast = Fast(encoder, workers=workers, **options)
    return fast.way(lambda network: lambda w: w[0].square().sum(), [weight], steps, tasks)


def test_what_a_step_keeps_is_what_autograd_saves():
    """Of w², w; its gradient 2 w needs the factor and the gradient of the sum, which are views of a number each."""
    for size in (1000, 4000):
        found = memory.kept(lambda w: w[0].square().sum(), [torch.ones(size, dtype=torch.float64)])
        assert 8 * size <= found < 8 * size + 100


def test_a_step_that_keeps_an_intermediate_result_counts_it_once():
    """tanh keeps its result y; the gradient 2 y (1 − y²) keeps some more of the same size, and w itself not."""
    found = memory.kept(lambda w: w[0].tanh().square().sum(), [torch.ones(1000, dtype=torch.float64)])
    assert 8000 <= found <= 5 * 8000
    assert found % 8000 < 100


def test_counting_leaves_the_weights_as_they_are():
    weight = torch.ones(3)
    memory.kept(lambda w: w[0].square().sum(), [weight])
    assert weight.tolist() == [1, 1, 1]
    assert not weight.requires_grad
    assert weight.grad is None


@pytest.mark.parametrize(("steps", "tasks", "workers"), [(1, 1, 1), (5, 1, 1), (2, 4, 1), (2, 4, 2), (2, 1, 2)])
def test_graphs_are_kept_where_they_take_half_of_the_memory_at_most(free, steps, tasks, workers):
    """Those of all steps and of the last loss, of as many tasks as run at the same time."""
    encoder = encoder_of("bert")
    step = memory.kept(lambda w: w[0].square().sum(), [torch.ones(1000, dtype=torch.float64)])
    needed = (steps + 1) * step * min(tasks, workers)
    free(2 * needed)
    assert way_of(encoder, steps, tasks, workers) == "graph"
    free(2 * needed - 2)
    assert way_of(encoder, steps, tasks, workers) == "recompute"


@pytest.mark.parametrize("way", ["graph", "recompute"])
def test_a_way_that_is_asked_for_is_taken_whatever_is_free(free, caplog, way):
    free(0 if way == "graph" else 2**60)
    with caplog.at_level(logging.INFO):
        assert way_of(encoder_of("bert"), second_order=way) == way
    assert not caplog.messages


@pytest.mark.parametrize(("size", "said"), [(2**60, "kept"), (0, "computed again")])
def test_the_choice_is_said_once_and_holds(free, caplog, size, said):
    """Even when the memory is another one at the next meta-batch. Both ways have the same gradient."""
    encoder, episodes = encoder_of("bert"), MAML.episodes(1)
    learner = MAML.learn(encoder, inner_steps=2, first_order=False)
    plain = outer(learner, episodes)
    learner.use(Fast(encoder))
    free(size)
    with caplog.at_level(logging.INFO, logger="metasearch.fast"):
        assert error(outer(learner, episodes), plain) < 1e-10
        free(2**60 - size)
        outer(learner, episodes)
    (message,) = caplog.messages
    assert said in message
    assert "graphs of 2 steps" in message


def test_in_first_order_nobody_asks(monkeypatch):
    def asked(*_):
        raise AssertionError

    monkeypatch.setattr("metasearch.fast.batch.available", asked)
    monkeypatch.setattr("metasearch.fast.batch.kept", asked)
    learner = MAML.learn(encoder_of("bert"), inner_steps=2)
    outer(learner.use(Fast(learner.encoder)), MAML.episodes(1))


def test_without_a_container_free_is_what_the_system_says(container):
    assert memory.available(CPU) == 5000


def test_a_container_without_a_limit(container):
    container(max="max", current=100)
    assert memory.available(CPU) == 5000


@pytest.mark.parametrize(
    ("limit", "used", "expected"), [(3000, 1000, 3000 - 1000), (9000, 1000, 5000), (1000, 1001, 0)]
)
def test_a_container_with_a_limit(container, limit, used, expected):
    container(max=limit, current=used)
    assert memory.available(CPU) == expected


def test_of_this_system_something_is_free():
    assert 0 < memory.available(CPU) < 2**60
