"""The training loop on the embedded benchmark: determinism, resume, errors, interruption."""

import os
import signal

import pytest
import torch

from metasearch import run
from metasearch.catalog import load_benchmark, load_recipe
from metasearch.engine.checkpoint import CheckpointStore
from metasearch.errors import ConfigError, NonFiniteError
from metasearch.learners.base import OuterLoss

SMALL = ["budget.meta_train=8", "budget.meta_valid=4", "budget.meta_batch=2", "budget.eval_every=2", "episodes.k=2"]


class Recorder:
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


def start(recipe="maml-tiny", mode="trans", *changes, seed=0):
    benchmark = load_benchmark("demo", mode)
    chosen = load_recipe(recipe, [*SMALL, *changes])
    encoder = run.load_encoder("tiny", benchmark.task.max_length, "cpu", seed=seed)
    return run.make_learner(chosen, encoder), benchmark, chosen


def weights(learner):
    return {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    ends = []
    for seed in (0, 0, 1):
        learner, benchmark, recipe = start()
        run.fit(learner, benchmark, recipe, seed=seed)
        ends.append(weights(learner))
    assert same(ends[0], ends[1])
    assert not same(ends[0], ends[2])


@pytest.mark.parametrize("recipe", ["fine-tune-tiny", "maml-tiny", "meta-sgd-tiny", "reptile-tiny"])
@pytest.mark.parametrize("killed_at", [1, 4])
def test_resume_equals_never_having_stopped(tmp_path, recipe, killed_at):
    changes = ["dropout=true"]
    learner, benchmark, chosen = start(recipe, "trans", *changes)
    heard = Recorder()
    whole = run.fit(learner, benchmark, chosen, listener=heard)
    store = CheckpointStore(tmp_path)
    dying, *_ = start(recipe, "trans", *changes)
    with pytest.raises(Killed):
        run.fit(dying, benchmark, chosen, listener=Recorder(killed_at, kill), store=store)
    resumed, *_ = start(recipe, "trans", *changes)
    again = Recorder()
    outcome = run.fit(resumed, benchmark, chosen, listener=again, store=store, resume=True)
    assert same(weights(resumed), weights(learner))
    assert outcome == whole
    assert heard.terms[-len(again.terms) :] == again.terms
    assert len(again.terms) == whole.steps - (killed_at - 1) // 2 * 2  # from the last checkpoint on


def test_a_teacher_of_its_own_is_resumed_too(tmp_path):
    changes = ["options.shared=false"]
    learner, benchmark, chosen = start("maml-align-tiny", "mono-bi-multi", *changes)
    run.fit(learner, benchmark, chosen)
    store = CheckpointStore(tmp_path)
    dying, *_ = start("maml-align-tiny", "mono-bi-multi", *changes)
    with pytest.raises(Killed):
        run.fit(dying, benchmark, chosen, listener=Recorder(5, kill), store=store)
    resumed, *_ = start("maml-align-tiny", "mono-bi-multi", *changes)
    run.fit(resumed, benchmark, chosen, store=store, resume=True)
    assert same(weights(resumed), weights(learner))
    assert any(name.startswith("teacher.") for name in weights(resumed))


def test_graded_negatives_and_similar_queries_resume_to_the_same_bits(tmp_path):
    changes = ["episodes.negatives=hard", "episodes.queries=similar", "episodes.negative_pool=8", "episodes.n_neg=2"]
    learner, benchmark, chosen = start("maml-tiny", "trans", *changes)
    run.fit(learner, benchmark, chosen)
    store = CheckpointStore(tmp_path)
    dying, *_ = start("maml-tiny", "trans", *changes)
    with pytest.raises(Killed):
        run.fit(dying, benchmark, chosen, listener=Recorder(3, kill), store=store)
    resumed, *_ = start("maml-tiny", "trans", *changes)
    run.fit(resumed, benchmark, chosen, store=store, resume=True)
    assert same(weights(resumed), weights(learner))


def test_the_encoder_ends_with_the_weights_of_the_best_dev_score():
    learner, benchmark, recipe = start("fine-tune-tiny", "trans", "outer.lr=1e-2")
    snapshots = {}
    heard = Recorder()
    heard.on_dev = lambda step, score, best: snapshots.update({step: (score, weights(learner))})
    outcome = run.fit(learner, benchmark, recipe, listener=heard)
    trained = {step: score for step, (score, _) in snapshots.items() if step > 0}
    best = max(trained, key=lambda step: (trained[step], -step))
    assert outcome.best_step == best
    assert outcome.best_score == trained[best]
    assert outcome.baseline == snapshots[0][0]
    assert same(weights(learner), snapshots[best][1])


def test_training_stops_when_patience_runs_out():
    learner, benchmark, recipe = start("maml-tiny", "trans", "budget.patience=2", "outer.lr=1e-12")
    outcome = run.fit(learner, benchmark, recipe)
    assert (outcome.reason, outcome.best_step, outcome.steps) == ("patience", 2, 4)  # nothing moves, so step 2 stays


def test_a_loss_that_is_not_finite_stops_before_the_update(monkeypatch):
    learner, benchmark, recipe = start()
    before = weights(learner)
    honest = learner.outer_loss

    def spoiled(episodes):
        loss = honest(episodes)
        return OuterLoss(loss.total * torch.nan, loss.terms)

    monkeypatch.setattr(learner, "outer_loss", spoiled)
    with pytest.raises(NonFiniteError, match=r"meta-train loss at outer step 1 is nan .*task.*outer\.lr"):
        run.fit(learner, benchmark, recipe)
    assert same(weights(learner), before)


def test_a_gradient_that_is_not_finite_stops_before_the_update(monkeypatch):
    learner, benchmark, recipe = start()
    before = weights(learner)
    some = next(p for _, p in learner.named_parameters())
    # sqrt has an infinite slope at 0, and the value is still finite
    monkeypatch.setattr(learner, "outer_loss", lambda episodes: OuterLoss((some * 0).abs().sum().sqrt() + some.sum()))
    with pytest.raises(NonFiniteError, match="gradient norm at outer step 1"):
        run.fit(learner, benchmark, recipe)
    assert same(weights(learner), before)


def test_an_interrupt_ends_after_the_step_with_a_checkpoint_that_resumes_exactly(tmp_path):
    learner, benchmark, recipe = start()
    run.fit(learner, benchmark, recipe)
    store = CheckpointStore(tmp_path)
    stopped, *_ = start()
    before = signal.getsignal(signal.SIGINT)
    ring = Recorder(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    outcome = run.fit(stopped, benchmark, recipe, listener=ring, store=store)
    assert (outcome.reason, outcome.steps) == ("interrupted", 3)
    assert signal.getsignal(signal.SIGINT) is before
    resumed, *_ = start()
    assert run.fit(resumed, benchmark, recipe, store=store, resume=True).reason == "finished"
    assert same(weights(resumed), weights(learner))


def test_bf16_runs_in_first_order_and_is_refused_in_second():
    learner, benchmark, recipe = start()
    exact, *_ = start()
    run.fit(learner, benchmark, recipe, precision="bf16", max_steps=2)
    run.fit(exact, benchmark, recipe, max_steps=2)
    assert not same(weights(learner), weights(exact))
    assert all(torch.isfinite(value).all() for value in weights(learner).values())
    learner, benchmark, recipe = start("maml-tiny", "trans", "options.first_order=false")
    with pytest.raises(ConfigError, match="bf16 works in first order only"):
        run.fit(learner, benchmark, recipe, precision="bf16")


def test_held_out_dev_groups_are_never_in_a_meta_valid_episode(monkeypatch):
    learner, benchmark, recipe = start("maml-tiny", "trans", "budget.dev_holdout=0.4")
    seen = set()
    honest = learner.outer_loss

    def watched(episodes):
        seen.update(t.question.group for e in episodes for s in e.sets for t in s.examples)
        return honest(episodes)

    monkeypatch.setattr(learner, "outer_loss", watched)
    run.fit(learner, benchmark, recipe)
    dev = benchmark.split.dev.groups
    held = set(dev[-round(0.4 * len(dev)) :])
    assert len(held) == 2
    assert not seen & held
    assert seen & (set(dev) - held)
