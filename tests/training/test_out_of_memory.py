"""Where memory does not suffice, an outer step is taken again in a way that needs less, with the same gradient."""

import pytest
import torch

from helpers.gradients import QUERY, SUPPORT, Case, encoder_of, error, outer
from metasearch.errors import OutOfMemory
from metasearch.training import episode_gradients, outer_gradients
from metasearch.training.outer_gradients import OuterGradients

MAML = Case("maml", sizes=(SUPPORT, QUERY))
FINE_TUNE = Case("fine-tune", sizes=(SUPPORT, QUERY))
DISTILL = Case("distill", "translations", (4,))
ON_A_CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried ...")
ONE = "out of memory on cpu: one episode is computed at a time; the gradient stays the same"
LAYERS = "out of memory on cpu: layers are recomputed in the backward pass; the gradient stays the same"


def failing(monkeypatch, times, raised=ON_A_CPU, name="PackedModule"):
    """Let an episode fail after so many were begun; returns what counts them."""
    module = episode_gradients if name == "PackedModule" else outer_gradients
    calls, before = [], getattr(module, name)

    def fail(*args):
        calls.append(args)
        if len(calls) in times:
            raise raised
        return before(*args)

    monkeypatch.setattr(module, name, fail)
    return calls


def warnings(caplog):
    """Return the warnings alone: a command of another test may have let the package log more."""
    return [each.message for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.slow
@pytest.mark.parametrize("raised", [torch.OutOfMemoryError("CUDA out of memory"), ON_A_CPU], ids=["gpu", "cpu"])
def test_layers_are_recomputed_and_a_line_says_so(monkeypatch, caplog, raised):
    """In the second episode: what the first one has added is no part of the gradient."""
    learner = MAML.learn(encoder_of("bert"), inner_steps=1, first_order=True)
    episodes = MAML.episodes(3)
    plain = outer(learner, episodes)
    caplog.set_level("WARNING")
    calls = failing(monkeypatch, {2}, raised)
    gradients = OuterGradients(learner.encoder, workers=1)
    assert error(outer(learner, episodes, gradients), plain) < 1e-10
    assert warnings(caplog) == [LAYERS]
    # It holds for the steps to come.
    assert error(outer(learner, episodes, gradients), plain) < 1e-10
    assert gradients.checkpointing == "layers"
    assert len(calls) == 2 + 3 + 3


@pytest.mark.slow
def test_episodes_are_computed_one_at_a_time_before_anything_is_recomputed(monkeypatch, caplog):
    learner, episodes = MAML.learn(encoder_of("bert"), inner_steps=1), MAML.episodes(3)
    plain = outer(learner, episodes)
    caplog.set_level("WARNING")
    failing(monkeypatch, {1})
    gradients = OuterGradients(learner.encoder, workers=2)
    assert error(outer(learner, episodes, gradients), plain) < 1e-10
    assert warnings(caplog) == [ONE]
    assert gradients.packed.workers == 1
    assert gradients.checkpointing == "auto"


@pytest.mark.slow
@pytest.mark.parametrize("case", [MAML, DISTILL], ids=str)
def test_dropout_is_that_of_the_step_however_often_it_is_begun(monkeypatch, caplog, case):
    """The second episode does not fit, or the loss of all texts: what was drawn before is drawn again."""
    learner, episodes = case.learn(encoder_of("bert"), inner_steps=1), case.episodes(2)

    def taken(seed):
        torch.manual_seed(seed)
        return outer(learner, episodes, OuterGradients(learner.encoder, workers=1))

    learner.train(True)
    try:
        plain, another = taken(0), taken(1)
        caplog.set_level("WARNING")
        failing(monkeypatch, {2} if case == MAML else {1}, name="PackedModule" if case == MAML else "_pull")
        again = taken(0)
    finally:
        learner.train(False)
    assert error(again, plain) < 1e-10 < 1e-3 < error(another, plain)
    assert warnings(caplog) == [LAYERS]


@pytest.mark.parametrize("case", [FINE_TUNE, DISTILL], ids=str)
def test_one_pass_of_all_texts_is_the_first_to_go_if_the_learner_makes_it(monkeypatch, caplog, case):
    """As on a GPU, where a learner without such a pass recomputes layers at once."""
    learner, episodes = case.learn(encoder_of("bert")), case.episodes(2)
    plain = outer(learner, episodes)
    caplog.set_level("WARNING")
    failing(monkeypatch, {1}, name="_pull")
    gradients = OuterGradients(learner.encoder, workers=1)
    gradients.together = 2
    assert error(outer(learner, episodes, gradients), plain) < 1e-10
    assert warnings(caplog) == [f"{ONE} but for rounding and dropout" if case == FINE_TUNE else LAYERS]
    assert gradients.together == (2 if case == DISTILL else 1)


def test_nothing_is_left_of_a_step_that_does_not_fit(monkeypatch):
    learner = MAML.learn(encoder_of("bert"), inner_steps=1)
    failing(monkeypatch, {2})
    gradients = OuterGradients(learner.encoder, workers=1, checkpointing="off")
    with pytest.raises(OutOfMemory):
        outer(learner, MAML.episodes(3), gradients)
    assert all(parameter.grad is None for _, parameter in learner.named_parameters())


@pytest.mark.parametrize("checkpointing", ["auto", "gradcache"])
def test_what_does_not_fit_in_any_way_is_an_error_that_says_what_needs_less(monkeypatch, checkpointing):
    learner = MAML.learn(encoder_of("bert"), inner_steps=1)
    failing(monkeypatch, range(9))
    with pytest.raises(OutOfMemory, match=r"out of memory on cpu .*smaller budget\.meta_batch or") as caught:
        outer(learner, MAML.episodes(1), OuterGradients(learner.encoder, workers=1, checkpointing=checkpointing))
    assert caught.value.exit_code == 8
    # What is on already is no advice.
    assert ("--checkpointing gradcache" in str(caught.value)) == (checkpointing == "auto")
