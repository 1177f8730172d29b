"""What every learner owes the engine, in every transfer mode and on the embedded tasks."""

import copy
from functools import cache

import pytest
import torch

from metasearch.config import registry
from metasearch.config.library import Library
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.episodes.samplers import samplers
from metasearch.errors import ConfigError, EncoderError
from metasearch.pipelines.factory import check_fit, learner_class, make_learner

LIBRARY = Library()
TASKS = ["demo", "demo-sts"]
# Those of one link alone are stages of a distillation, which have tests of their own.
LEARNERS = [name for name in registry.names("learners") if registry.load("learners", name).LEARNER.links != (1,)]
SMALL = ["episodes.k=2", "episodes.q=3", "episodes.n_neg=1", "outer.lr=1e-3"]


@cache
def untrained(task):
    """Return the encoder with the lengths of a task, which nothing may change."""
    return load_encoder("tiny", LIBRARY.task(task).max_length, device="cpu")


benchmark_of = cache(load_benchmark)


def recipe_of(learner, mode):
    known = learner_class(LIBRARY.choose_recipe(mode, "tiny", learner, None, SMALL)).Options.model_fields
    options = ["options.inner_steps=2"] if "inner_steps" in known else []
    if learner == "maml":  # of those with both orders, one is held to the second
        options.append("options.first_order=false")
    return LIBRARY.choose_recipe(mode, "tiny", learner, None, SMALL + options)


def fits(learner, mode):
    return LIBRARY.mode(mode).links in registry.load("learners", learner).LEARNER.links


def runs():
    """Return every learner with both tasks, and every mode."""
    fitting = [
        (task, mode, learner)
        for task in TASKS
        for mode in LIBRARY.names("mode")
        if LIBRARY.mode(mode).arrangements(LIBRARY.task(task))
        for learner in LEARNERS
        if fits(learner, mode)
    ]
    found = [*{(task, learner): (task, mode, learner) for task, mode, learner in fitting}.values()]
    modes = {mode for _, mode, _ in found}
    return [*found, *{mode: (task, mode, learner) for task, mode, learner in fitting if mode not in modes}.values()]


RUNS = runs()
QUICK = {learner: run for *run, learner in reversed(RUNS)}
"""One run of each learner."""
MISFITS = [(mode, learner) for mode in LIBRARY.names("mode") for learner in LEARNERS if not fits(learner, mode)]


def tier(run):
    """Return a run as a parameter, slow where its learner has a quick one."""
    marks = () if QUICK[run[-1]] == [*run[:-1]] else pytest.mark.slow
    return pytest.param(run, id="-".join(run), marks=marks)


@pytest.fixture(params=[tier(run) for run in RUNS])
def made(request):
    """Return a learner and a meta-batch of an episode of each phase."""
    task, mode, name = request.param
    benchmark, recipe = benchmark_of(task, mode), recipe_of(name, mode)
    check_fit(recipe, benchmark, "float32")
    learner = make_learner(recipe, copy.deepcopy(untrained(task)))
    episodes = [sampler.episode(0) for sampler in samplers(benchmark, recipe, seed=0).values()]
    assert len(episodes) == 2
    return learner, episodes


def outer_step(learner, episodes):
    """Return the loss, its terms and the gradients of one outer step."""
    for _, parameter in learner.named_parameters():
        parameter.grad = None
    loss = learner.outer_loss(episodes)
    loss.total.backward()
    gradients = {name: p.grad for name, p in learner.named_parameters() if p.grad is not None}
    return loss.total.detach(), loss.terms, gradients


def state(learner):
    """Return a copy of everything an outer step may change: the learner's parameters and the encoder's."""
    parameters = dict(learner.named_parameters()) | learner.encoder.embedder.state_dict()
    return {name: value.detach().clone() for name, value in parameters.items()}


def test_an_outer_step(made):
    """Finite loss and gradients, no weight changed, and the same bits the second time."""
    learner, episodes = made
    before = state(learner)

    total, terms, gradients = outer_step(learner, episodes)
    again, terms_again, gradients_again = outer_step(learner, episodes)

    assert total.shape == ()
    assert total.isfinite()
    assert "task" in terms
    assert all(isinstance(value, float) for value in terms.values())
    assert all(gradient.isfinite().all() for gradient in gradients.values())
    assert sum(gradient.count_nonzero().item() for gradient in gradients.values()) > 0
    after = state(learner)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert torch.equal(again, total)
    assert terms_again == terms
    assert gradients_again.keys() == gradients.keys()
    assert all(torch.equal(gradients_again[name], gradient) for name, gradient in gradients.items())


def test_a_learner_refuses_a_mode_of_other_links_and_names_one_that_fits():
    for mode, learner in MISFITS:
        benchmark = benchmark_of("demo", mode)
        with pytest.raises(ConfigError) as error:
            check_fit(recipe_of(learner, mode), benchmark, "float32")
        said, arrangement = str(error.value), benchmark.arrangements["meta-train"][0]
        assert said.startswith(f"learner '{learner}' needs a mode of "), mode
        such = "mono -> bi -> multi" if learner == "maml-align" else "mono -> mono"
        assert f"links, such as {such}; '{arrangement}' has {len(arrangement.variants)}" in said, mode


def test_every_learner_and_every_mode_is_run():
    assert {learner for _, _, learner in RUNS} == set(LEARNERS)
    assert {mode for _, mode, _ in RUNS} == set(LIBRARY.names("mode"))


def test_an_encoder_whose_weights_are_all_frozen_cannot_be_trained():
    encoder = load_encoder("tiny", device="cpu")
    encoder.model.requires_grad_(False)
    with pytest.raises(EncoderError, match="all weights are frozen"):
        make_learner(recipe_of("fine-tune", "mono-bi"), encoder)
