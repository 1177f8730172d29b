"""What half precision costs is measured on the first outer gradient, and said."""

import logging

import pytest
import torch

from helpers.training import small
from metasearch.config.library import choose_recipe
from metasearch.episodes.samplers import samplers
from metasearch.errors import OutOfMemory
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines import dev_evaluator
from metasearch.pipelines.factory import fit, load_encoder, make_gradients, make_learner
from metasearch.training.gradients import bf16_error, log_bf16_error


@pytest.fixture
def made():
    """Return a benchmark, a recipe and its learner."""
    settings = ["episodes.k=2", "episodes.q=2", "options.inner_steps=1", "budget.meta_valid=0", "budget.eval_every=0"]
    benchmark, recipe = small("mono-bi"), choose_recipe("mono-bi", "tiny", "maml", None, settings)
    return benchmark, recipe, make_learner(recipe, load_encoder("tiny", device="cpu"))


@pytest.mark.slow
def test_it_is_the_relative_distance_of_the_two_gradients_and_leaves_none_behind(made):
    benchmark, recipe, learner = made
    gradients_of = make_gradients(learner.encoder)
    episodes = samplers(benchmark, recipe, seed=0)["meta-train"].batch(0, 2)
    parameters = [parameter for _, parameter in learner.named_parameters()]

    error = bf16_error(learner, episodes, gradients_of)

    assert all(parameter.grad is None for parameter in parameters)
    gradients = []
    for bf16 in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            gradients_of(learner, episodes)
        gradients.append(torch.cat([p.grad.to_dense().flatten() for p in parameters if p.grad is not None]))
        learner.encoder.embedder.zero_grad()
    assert error == pytest.approx(((gradients[0] - gradients[1]).norm() / gradients[0].norm()).item(), rel=1e-3)
    assert 1e-4 < error < 0.1


def test_a_step_that_does_not_fit_in_float32_is_trained_in_bf16_without_the_comparison(made, caplog, monkeypatch):
    """Nor does what was tried for float32 hold for the training; where processes take part, the others would wait."""
    _, _, learner = made
    gradients = make_gradients(learner.encoder)

    def take(learner, episodes):
        gradients.checkpointing = "layers"
        gradients.packed.most_workers = 1
        raise OutOfMemory("too little")

    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    caplog.set_level(logging.INFO)
    log_bf16_error(learner, [], take, gradients)
    assert caplog.messages == [
        "bf16: the first outer gradient is not compared with float32, in which the step does not fit the memory"
    ]
    assert gradients.checkpointing == "auto"
    assert gradients.packed.workers == 2
    with pytest.raises(OutOfMemory):
        log_bf16_error(learner, [], take, gradients, alone=False)


@pytest.mark.slow
def test_dev_scores_while_training_have_the_precision_of_the_run(monkeypatch):
    settings = ["episodes.k=2", "episodes.q=2", "options.inner_steps=1", "budget.meta_valid=0", "budget.eval_every=0"]
    benchmark, recipe = (
        small("mono-bi"),
        choose_recipe("mono-bi", "tiny", "fine-tune", None, settings[:2] + settings[3:]),
    )
    learner, asked = make_learner(recipe, load_encoder("tiny", device="cpu")), []
    monkeypatch.setattr(
        dev_evaluator, "evaluate", lambda *args, **keys: asked.append(keys["precision"]) or evaluate(*args, **keys)
    )

    fit(learner, benchmark, recipe, max_steps=1, precision="bf16")

    assert asked == ["bf16"] * 2  # before and after the step
