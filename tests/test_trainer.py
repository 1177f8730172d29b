"""The training loop on the embedded benchmark: determinism, resume, errors, interruption."""

import itertools
import os
import signal

import pytest
import torch

from _small import TOKENS, VOCABULARY, SmallEncoder
from metasearch import run
from metasearch.catalog import load_benchmark, load_recipe
from metasearch.config import Loss, Outer, Pace
from metasearch.engine.checkpoint import CheckpointStore
from metasearch.engine.schedule import Phase, Schedule
from metasearch.engine.trainer import Trainer
from metasearch.errors import ConfigError, NonFiniteError
from metasearch.learners.base import Learner, OuterLoss

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


SCHEDULED = ["outer.warmup=0.5", "outer.decay=cosine", "outer.clip=0.1", "outer.exempt_bias_and_norm=true"]


@pytest.mark.parametrize("changes", [["outer.optimizer=lars", "outer.lr=1.0"], ["outer.weight_decay=0.1"]])
@pytest.mark.parametrize("killed_at", [3, 6])
def test_rates_momentum_and_groups_resume_to_the_same_bits(tmp_path, changes, killed_at):
    learner, benchmark, chosen = start("fine-tune-tiny", "trans", *SCHEDULED, *changes)
    first = weights(learner)
    run.fit(learner, benchmark, chosen)
    store = CheckpointStore(tmp_path)
    dying, *_ = start("fine-tune-tiny", "trans", *SCHEDULED, *changes)
    with pytest.raises(Killed):
        run.fit(dying, benchmark, chosen, listener=Recorder(killed_at, kill), store=store)
    resumed, *_ = start("fine-tune-tiny", "trans", *SCHEDULED, *changes)
    run.fit(resumed, benchmark, chosen, store=store, resume=True)
    assert same(weights(resumed), weights(learner))
    assert not same(first, weights(learner))


class Plain:
    """Episodes that are nothing but numbers; hears how many are asked for."""

    def __init__(self):
        self.asked = []

    def batch(self, step, size):
        self.asked.append((step, size))
        return list(range(size))


class Slope(Learner):
    """Has a gradient of a given length; hears what the engine tells it."""

    def __init__(self, length):
        super().__init__(SmallEncoder(), Loss(), None)
        self.length, self.heard, self.gradients = length, [], []

    def named_parameters(self):
        return iter([("first.weight", self.encoder.embedder.first.weight)])

    def begin(self, total_steps):
        self.heard.append(total_steps)

    def outer_loss(self, episodes):
        weight = self.encoder.embedder.first.weight
        self.heard.append(len(episodes))
        return OuterLoss(weight.sum() * self.length / weight.numel() ** 0.5)

    def after_step(self):
        self.gradients.append(self.encoder.embedder.first.weight.grad.norm().item())


def trained(learner, outer, steps=4, size=3):
    """Train a learner for some steps; return the terms of each, and what was asked of the source."""
    source, told = Plain(), []
    recorder = Recorder()
    recorder.on_step = lambda step, total, phase, terms: told.append(terms)
    plan = Schedule((Phase("train", source, 2),), steps, size)
    pace = Pace(eval_every=0, patience=0)
    outcome = Trainer(learner, plan, outer, pace, dev=lambda: 0.5, listener=recorder).fit()
    assert (outcome.steps, outcome.reason) == (steps, "finished")
    return told, source.asked


class Words(Learner):
    """Draws a few of its encoder's words for an episode, and gives the gradient of the word table as rows or whole."""

    def __init__(self, by_rows):
        super().__init__(SmallEncoder(), Loss(), None)
        self.by_rows = by_rows
        self.table = self.encoder.embedder.tokens.weight

    def outer_loss(self, episodes):
        draw = torch.Generator().manual_seed(episodes[0])
        ids = torch.randint(VOCABULARY // 2, (3, TOKENS), generator=draw) + episodes[0] % 3
        wanted = torch.randn(3, self.table.shape[1], generator=draw, dtype=torch.float64)
        return OuterLoss((self.encoder.embedder({"input_ids": ids}) * wanted).sum() * self.scale(episodes))

    def scale(self, episodes):
        return 1.0

    def outer_gradient(self, episodes):
        loss = super().outer_gradient(episodes)
        if self.by_rows:
            gradient = self.table.grad.to_sparse(1)
            twice = gradient.indices().repeat(1, 2), gradient.values().repeat(2, 1) / 2  # as where two were added
            self.table.grad = torch.sparse_coo_tensor(*twice, gradient.shape, check_invariants=True)
        return loss


class Numbered:
    """Episodes that are the number of their step."""

    def batch(self, step, size):
        return [step] * size


SCORES = itertools.count()  # ever better, so that the last weights stay


def fit_words(learner, outer, steps=12, store=None, resume=False, **recorder):
    """Train on words; return the terms of each step."""
    told, hear = [], Recorder(**recorder)
    act = hear.on_step
    hear.on_step = lambda step, total, phase, terms: (told.append(terms), act(step, total, phase, terms))
    plan = Schedule((Phase("train", Numbered(), steps),), steps, 1)
    Trainer(learner, plan, outer, Pace(eval_every=2, patience=0), lambda: next(SCORES), hear, store).fit(resume)
    return told


ROW_SETTINGS = [
    {},
    {"weight_decay": 0.1, "exempt_bias_and_norm": True, "clip": 0.5, "warmup": 0.2, "decay": "cosine"},
    {"optimizer": "lars", "weight_decay": 0.1, "clip": 0.5},
]


@pytest.mark.parametrize("settings", ROW_SETTINGS)
def test_a_word_table_with_a_gradient_of_rows_is_trained_as_with_the_whole_one(settings):
    rowwise, whole = Words(by_rows=True), Words(by_rows=False)
    start = weights(whole)
    told = [fit_words(learner, Outer(lr=0.05, **settings)) for learner in (rowwise, whole)]
    for name, expected in weights(whole).items():
        torch.testing.assert_close(weights(rowwise)[name], expected, rtol=1e-12, atol=1e-14)
    assert not torch.equal(weights(whole)["tokens.weight"], start["tokens.weight"])
    assert [terms["grad"] for terms in told[0]] == pytest.approx([terms["grad"] for terms in told[1]], rel=1e-13)
    if "clip" in settings:
        assert max(terms["grad"] for terms in told[0]) > settings["clip"]


@pytest.mark.parametrize("settings", ROW_SETTINGS)
@pytest.mark.parametrize("killed_at", [1, 8])
def test_training_by_rows_resumes_to_the_same_bits(tmp_path, settings, killed_at):
    whole, dying, resumed = (Words(by_rows=True) for _ in range(3))
    outer, store = Outer(lr=0.05, **settings), CheckpointStore(tmp_path)
    fit_words(whole, outer)
    with pytest.raises(Killed):
        fit_words(dying, outer, store=store, at=killed_at, act=kill)
    fit_words(resumed, outer, store=store, resume=True)
    assert same(weights(resumed), weights(whole))


def test_a_row_that_is_not_finite_stops_before_the_update():
    learner = Words(by_rows=True)
    learner.scale = lambda episodes: 1.0 if episodes[0] < 2 else float("inf")
    honest, snapshots = learner.outer_gradient, []

    def spoiled(episodes):
        snapshots.append(weights(learner))
        loss = honest(episodes)
        return OuterLoss(torch.zeros(()), loss.terms)

    learner.outer_gradient = spoiled
    with pytest.raises(NonFiniteError, match="train gradient norm at outer step 3 is"):
        fit_words(learner, Outer(lr=0.05))
    assert same(weights(learner), snapshots[-1])
    assert not same(weights(learner), snapshots[0])


def test_the_schedule_says_how_many_episodes_a_step_has_and_the_learner_hears_the_total_first():
    learner = Slope(1.0)
    _, asked = trained(learner, Outer(lr=0.1), steps=4, size=3)
    assert asked == [(0, 3), (1, 3), (0, 3), (1, 3)]
    assert learner.heard == [4, 3, 3, 3, 3]


@pytest.mark.parametrize(("clip", "length", "expected"), [(0.0, 7.0, 7.0), (2.0, 7.0, 2.0), (2.0, 1.5, 1.5)])
def test_a_gradient_longer_than_clip_is_cut_to_it_and_reported_as_it_was(clip, length, expected):
    learner = Slope(length)
    told, _ = trained(learner, Outer(lr=0.1, clip=clip), steps=1)
    assert learner.gradients == [pytest.approx(expected, rel=1e-5)]
    assert told[0]["grad"] == pytest.approx(length, rel=1e-12)


def test_the_rate_of_each_step_follows_the_schedule_and_is_told():
    """Exempt biases take steps of plain SGD, so the way that they go is the sum of the rates."""
    learner = Slope(1.0)
    bias = learner.encoder.embedder.first.bias
    learner.named_parameters = lambda: iter([("bias", bias)])
    learner.outer_loss = lambda episodes: OuterLoss(bias.sum())
    learner.after_step = lambda: None
    before = bias.detach().clone()
    shape = {"warmup": 0.5, "decay": "linear", "exempt_bias_and_norm": True}
    told, _ = trained(learner, Outer(optimizer="lars", lr=0.2, momentum=0, weight_decay=9, **shape), steps=4)
    rates = [0.2 * 1 / 2, 0.2, 0.2 * 2 / 3, 0.2 * 1 / 3]
    assert [terms["lr"] for terms in told] == pytest.approx(rates, rel=1e-15)
    torch.testing.assert_close(bias.detach(), before - sum(rates), rtol=1e-14, atol=1e-15)


def test_a_constant_rate_is_not_told_at_every_step():
    told, _ = trained(Slope(1.0), Outer(lr=0.2))
    assert [sorted(terms) for terms in told] == [["grad", "loss"]] * 4


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
    honest = learner.outer_gradient

    def spoiled(episodes):
        loss = honest(episodes)
        return OuterLoss(loss.total * torch.nan, loss.terms)

    monkeypatch.setattr(learner, "outer_gradient", spoiled)
    with pytest.raises(NonFiniteError, match=r"meta-train loss at outer step 1 is nan .*task.*outer\.lr"):
        run.fit(learner, benchmark, recipe)
    assert same(weights(learner), before)


def test_a_gradient_that_is_not_finite_stops_before_the_update(monkeypatch):
    learner, benchmark, recipe = start()
    before = weights(learner)
    some = next(p for _, p in learner.named_parameters())

    def steep(episodes):
        loss = (some * 0).abs().sum().sqrt() + some.sum()  # sqrt has an infinite slope at 0, and the value is finite
        loss.backward()
        return OuterLoss(loss.detach())

    monkeypatch.setattr(learner, "outer_gradient", steep)
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


@pytest.mark.parametrize(
    ("changes", "ended"), [([], "finished"), (["budget.patience=1", "outer.lr=1e-12"], "patience")]
)
def test_an_interrupt_at_the_last_step_says_so_and_resumes_to_the_end_without_a_step(tmp_path, changes, ended):
    learner, benchmark, recipe = start("maml-tiny", "trans", *changes)
    whole = run.fit(learner, benchmark, recipe)
    assert whole.reason == ended
    store = CheckpointStore(tmp_path)
    stopped, *_ = start("maml-tiny", "trans", *changes)
    ring = Recorder(whole.steps, lambda: os.kill(os.getpid(), signal.SIGINT))
    outcome = run.fit(stopped, benchmark, recipe, listener=ring, store=store)
    assert (outcome.reason, outcome.steps) == ("interrupted", whole.steps)
    resumed, *_ = start("maml-tiny", "trans", *changes)
    again = Recorder()
    assert run.fit(resumed, benchmark, recipe, listener=again, store=store, resume=True) == whole
    assert (again.terms, again.scores) == ([], [])
    assert same(weights(resumed), weights(learner))


def test_the_only_step_of_a_training_has_the_whole_rate_whatever_its_warm_up():
    for warmup in (0.1, 0.514, 0.99):
        for decay in ("none", "linear", "cosine"):
            told, _ = trained(Slope(1.0), Outer(lr=0.2, warmup=warmup, decay=decay), steps=1)
            assert told[0]["lr"] == 0.2


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
    honest = learner.outer_gradient

    def watched(episodes):
        seen.update(t.question.group for e in episodes for s in e.sets for t in s.examples)
        return honest(episodes)

    monkeypatch.setattr(learner, "outer_gradient", watched)
    run.fit(learner, benchmark, recipe)
    dev = benchmark.split.dev.groups
    held = set(dev[-round(0.4 * len(dev)) :])
    assert len(held) == 2
    assert not seen & held
    assert seen & (set(dev) - held)
