"""Short trainings on the embedded benchmark, and what listens to one, stops it and compares its ends."""

from dataclasses import replace
from functools import cache

import torch

from metasearch.config.library import load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.pipelines import factory
from metasearch.runs.callbacks import Callback

SMALL = [
    *("budget.meta_train=8", "budget.meta_valid=4", "budget.meta_batch=2", "budget.eval_every=2"),
    *("episodes.k=2", "episodes.q=2"),
]
STEPS = 8 // 2 + 4 // 2


class Recorder(Callback):
    """Hears steps and scores, and may act on a step."""

    def __init__(self, at=None, act=None):
        self.terms, self.scores, self.at, self.act = [], [], at, act

    def on_step(self, step, total, phase, terms):
        self.terms.append((step, phase, terms["loss"]))
        if step == self.at:
            self.act()

    def on_dev(self, step, score, best):
        self.scores.append((step, score, best))


class Killed(Exception):
    """Stands for a process that dies."""


def kill():
    raise Killed


@cache
def small(mode):
    """Return the embedded benchmark with two of its articles in dev, so that a dev score takes little."""
    benchmark = load_benchmark("demo", mode)
    dev = benchmark.split.dev
    return replace(benchmark, split=replace(benchmark.split, dev=dev.select(dev.groups[:2])))


def start(recipe="maml-tiny", mode="trans", *changes, seed=0):
    """Return a learner with a fresh encoder, the small benchmark, and the recipe with two inner steps if it has any."""
    inner = [] if recipe.startswith("fine-tune") else ["options.inner_steps=2"]
    chosen = load_recipe(recipe, [*SMALL, *inner, *changes])
    encoder = load_encoder("tiny", small(mode).task.max_length, device="cpu", seed=seed)
    return factory.make_learner(chosen, encoder), small(mode), chosen


def weights(learner):
    return {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@cache
def whole(recipe="maml-tiny", mode="trans", *changes):
    """Return the weights, the outcome and the steps of a training that nothing stopped; it is made once for all tests.

    Nothing may change the weights.
    """
    learner, benchmark, chosen = start(recipe, mode, *changes)
    heard = Recorder()
    outcome = factory.fit(learner, benchmark, chosen, callback=heard)
    return weights(learner), outcome, heard.terms
