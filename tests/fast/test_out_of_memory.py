"""Where memory does not suffice, an outer step is taken again in a way that needs less, with the same gradient."""

import sys

import pytest
import torch

from helpers.gradients import QUERY, SUPPORT, Case, encoder_of, error, outer
from metasearch.errors import OutOfMemory
from metasearch.fast import FastGradients, memory

MAML = Case("maml", sizes=(SUPPORT, QUERY))
# The package offers its function under the name of the module.
transfer = sys.modules["metasearch.fast.transfer"]
ON_A_CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried ...")


def clear(learner):
    """Leave no gradients: other tests share the encoder."""
    for _, parameter in learner.named_parameters():
        parameter.grad = None


def failing(monkeypatch, name, times, raised=ON_A_CPU):
    """Let a way to take gradients fail after it was taken so often; returns what counts its calls."""
    calls, before = [], getattr(transfer, name)

    def fail(*args):
        calls.append(args)
        if len(calls) in times:
            raise raised
        return before(*args)

    monkeypatch.setattr(transfer, name, fail)
    return calls


@pytest.mark.parametrize("raised", [torch.OutOfMemoryError("CUDA out of memory"), ON_A_CPU], ids=["gpu", "cpu"])
def test_graphs_that_do_not_fit_after_all_are_computed_again_and_a_line_says_so(monkeypatch, caplog, raised):
    """In the second episode: what the first one has added is no part of the gradient."""
    learner = MAML.learn(encoder_of("bert"), inner_steps=2, first_order=False)
    episodes = MAML.episodes(3)
    plain = outer(learner, episodes)
    calls = failing(monkeypatch, "_graph", {2}, raised)
    fast = FastGradients(learner.encoder, "graph", workers=1)
    assert error(outer(learner, episodes, fast), plain) < 1e-10
    (line,) = caplog.messages
    assert line == "out of memory on cpu: inner steps are computed again on the way back; the gradient stays the same"
    # It holds for the steps to come.
    assert error(outer(learner, episodes, fast), plain) < 1e-10
    assert len(calls) == 2


def test_in_first_order_episodes_are_computed_one_at_a_time(monkeypatch, caplog):
    learner, episodes = MAML.learn(encoder_of("bert"), inner_steps=2), MAML.episodes(3)
    plain = outer(learner, episodes)
    failing(monkeypatch, "_first", {1})
    fast = FastGradients(learner.encoder, workers=2)
    assert error(outer(learner, episodes, fast), plain) < 1e-10
    assert caplog.messages == ["out of memory on cpu: one episode is computed at a time; the gradient stays the same"]
    assert fast.encoder.workers == 1


def test_dropout_is_that_of_the_step_however_often_it_is_begun(monkeypatch, caplog):
    """The second episode does not fit: what the first one has drawn is drawn again."""
    learner, episodes = MAML.learn(encoder_of("bert"), inner_steps=1), MAML.episodes(2)

    def taken(seed):
        torch.manual_seed(seed)
        return outer(learner, episodes, FastGradients(learner.encoder, workers=1))

    learner.train(True)
    try:
        plain, another = taken(0), taken(1)
        failing(monkeypatch, "_first", {2})
        again = taken(0)
    finally:
        learner.train(False)
    assert error(again, plain) < 1e-10 < 1e-3 < error(another, plain)
    assert caplog.messages == [
        "out of memory on cpu: layers are computed again on the way back; the gradient stays the same"
    ]


def test_a_gradient_that_was_there_stays(monkeypatch):
    learner, episodes = MAML.learn(encoder_of("bert"), inner_steps=1), MAML.episodes(2)
    clear(learner)
    failing(monkeypatch, "_first", {1})
    parameters = [parameter for _, parameter in learner.named_parameters()]
    try:
        FastGradients(learner.encoder, workers=2)(learner, episodes)
        once = [None if parameter.grad is None else parameter.grad.clone() for parameter in parameters]
        failing(monkeypatch, "_first", {1})
        FastGradients(learner.encoder, workers=2)(learner, episodes)
        for parameter, expected in zip(parameters, once, strict=True):
            if expected is not None:
                torch.testing.assert_close(parameter.grad.to_dense(), 2 * expected.to_dense())
    finally:
        clear(learner)


@pytest.mark.parametrize("checkpointing", ["auto", "texts"])
def test_what_does_not_fit_in_any_way_is_an_error_that_says_what_needs_less(monkeypatch, checkpointing):
    learner = MAML.learn(encoder_of("bert"), inner_steps=1)
    failing(monkeypatch, "_first", range(9))
    with pytest.raises(OutOfMemory, match=r"out of memory on cpu .*smaller budget\.meta_batch or") as caught:
        outer(learner, MAML.episodes(1), FastGradients(learner.encoder, workers=1, checkpointing=checkpointing))
    assert caught.value.exit_code == 8
    # What is on already is no advice.
    assert ("--checkpointing texts" in str(caught.value)) == (checkpointing == "auto")
    clear(learner)


def test_other_errors_are_none_of_memory(monkeypatch):
    assert memory.out_of_memory(ON_A_CPU)
    assert not memory.out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    learner = MAML.learn(encoder_of("bert"), inner_steps=1)
    failing(monkeypatch, "_first", {1}, RuntimeError("shapes"))
    with pytest.raises(RuntimeError, match="shapes"):
        outer(learner, MAML.episodes(1), FastGradients(learner.encoder, workers=1))
    clear(learner)
