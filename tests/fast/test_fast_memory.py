"""How second-order gradients are taken: as graphs while these fit the memory, and what is known of the memory."""

import logging
import weakref

import pytest
import torch

from helpers.gradients import Case, encoder_of, error, outer
from metasearch.fast import FastEncoder, FastGradients, memory
from metasearch.runs import host

MAML = Case("maml")
CPU = torch.device("cpu")


@pytest.fixture
def there(monkeypatch):
    """Return a function that sets how much memory there is."""
    return lambda size: monkeypatch.setattr("metasearch.fast.encoder.capacity", lambda device: size)


@pytest.fixture
def container(monkeypatch, tmp_path):
    """Return a function that writes the file of a container's limit, where the machine has 5000 bytes."""
    monkeypatch.setattr(host, "_CGROUP", tmp_path / "memory.max")
    monkeypatch.setattr(host.os, "sysconf", {"SC_PAGE_SIZE": 10, "SC_PHYS_PAGES": 500}.__getitem__)
    return lambda limit: (tmp_path / "memory.max").write_text(f"{limit}\n", encoding="ascii")


def mode_of(encoder, steps=2, jobs=1, workers=1, **options):
    """Return the mode that is chosen with one weight of 1000 numbers, squared: it keeps that weight."""
    weight = torch.ones(1000, dtype=torch.float64)
    fast = FastEncoder(encoder, workers=workers, **options)
    return fast.gradient_mode(lambda network: lambda w: w[0].square().sum(), [weight], steps, jobs)


def test_what_a_step_keeps_is_what_autograd_saves():
    """Of w², w; its gradient 2 w needs the factor and the gradient of the sum, which are views of a number each."""
    for size in (1000, 4000):
        found = memory.graph_size(lambda w: w[0].square().sum(), [torch.ones(size, dtype=torch.float64)])
        assert 8 * size <= found < 8 * size + 100


def test_a_step_that_keeps_an_intermediate_result_counts_it_once():
    """tanh keeps its result y; the gradient 2 y (1 − y²) keeps some more of the same size, and w itself not."""
    found = memory.graph_size(lambda w: w[0].tanh().square().sum(), [torch.ones(1000, dtype=torch.float64)])
    assert 8000 <= found <= 5 * 8000
    assert found % 8000 < 100


def test_counting_leaves_the_weights_as_they_are():
    weight = torch.ones(3)
    memory.graph_size(lambda w: w[0].square().sum(), [weight])
    assert weight.tolist() == [1, 1, 1]
    assert not weight.requires_grad
    assert weight.grad is None


@pytest.mark.parametrize(("steps", "jobs", "workers"), [(1, 1, 1), (5, 1, 1), (2, 4, 1), (2, 4, 2), (2, 1, 2)])
def test_graphs_are_kept_where_they_take_half_of_the_memory_at_most(there, steps, jobs, workers):
    """Those of all steps and of the last loss, of as many jobs as run at the same time."""
    encoder = encoder_of("bert")
    step = memory.graph_size(lambda w: w[0].square().sum(), [torch.ones(1000, dtype=torch.float64)])
    needed = (steps + 1) * step * min(jobs, workers)
    there(2 * needed)
    assert mode_of(encoder, steps, jobs, workers) == "graph"
    there(2 * needed - 2)
    assert mode_of(encoder, steps, jobs, workers) == "recompute"


@pytest.mark.parametrize("mode", ["graph", "recompute"])
def test_a_mode_that_is_asked_for_is_taken_whatever_is_there(there, caplog, mode):
    there(0 if mode == "graph" else 2**60)
    with caplog.at_level(logging.INFO):
        assert mode_of(encoder_of("bert"), second_order=mode) == mode
    assert not caplog.messages


@pytest.mark.parametrize(("size", "said"), [(2**60, "kept"), (0, "computed again")])
def test_the_choice_is_said_once_and_holds(there, caplog, size, said):
    """Even when the memory is another one at the next meta-batch. Both ways have the same gradient."""
    encoder, episodes = encoder_of("bert"), MAML.episodes(1)
    learner = MAML.learn(encoder, inner_steps=2, first_order=False)
    plain = outer(learner, episodes)
    gradients = FastGradients(encoder)
    there(size)
    with caplog.at_level(logging.INFO, logger="metasearch.fast"):
        assert error(outer(learner, episodes, gradients), plain) < 1e-10
        there(2**60 - size)
        outer(learner, episodes, gradients)
    (message,) = caplog.messages
    assert said in message
    assert "graphs of inner steps take about" in message


def test_in_first_order_nobody_asks(monkeypatch):
    def asked(*_):
        raise AssertionError

    monkeypatch.setattr("metasearch.fast.encoder.capacity", asked)
    monkeypatch.setattr("metasearch.fast.encoder.graph_size", asked)
    learner = MAML.learn(encoder_of("bert"), inner_steps=2)
    outer(learner, MAML.episodes(1), FastGradients(learner.encoder))


def test_what_was_counted_is_let_go():
    found = []

    def objective(weights):
        hidden = weights[0].tanh()
        found.append(weakref.ref(hidden))
        return hidden.square().sum()

    memory.graph_size(objective, [torch.ones(3, dtype=torch.float64)])

    assert found[0]() is None


def test_with_dropout_graphs_are_kept_whatever_is_there_as_a_step_computed_again_would_draw_other_numbers(there):
    there(0)
    encoder = encoder_of("bert")
    encoder.embedder.train()
    try:
        assert mode_of(encoder) == "graph"
        assert mode_of(encoder, second_order="recompute") == "graph"
    finally:
        encoder.embedder.eval()  # other tests share it


def test_without_a_container_it_is_the_memory_of_the_machine(container):
    assert memory.capacity(CPU) == 5000


@pytest.mark.parametrize(("limit", "expected"), [("max", 5000), (3000, 3000), (9000, 5000)])
def test_a_container_may_have_a_limit(container, limit, expected):
    container(limit)
    assert memory.capacity(CPU) == expected


def test_this_machine_has_memory():
    assert 2**20 < memory.capacity(CPU) < 2**60
