"""The training loop: determinism, rates and clipping, the best dev score, patience, and errors."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from helpers.gradients import PLAIN, REPTILE, STEPPING, encoder_of, outer
from helpers.padded import PaddedGradients, padded
from helpers.small import TOKENS, VOCABULARY, SmallEncoder
from helpers.training import Recorder, same, start, weights, whole
from metasearch.algorithms.base import EpisodeLearner, OuterLoss
from metasearch.config.recipe import Budget, EvalSchedule, Loss, Outer
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, NonFiniteError
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines import factory
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Trainer

ONE_PHASE = Budget(meta_train=6, meta_valid=0, meta_batch=2, epochs=1, eval_every=0, patience=0)


class Number(int):
    """An episode that is the number of its place in a phase."""

    arrangement = "en_en"
    sets = ()


class Plain:
    """Episodes that are nothing but numbers; hears how many are asked for."""

    def __init__(self):
        self.asked = []

    def batch(self, step, size):
        self.asked.append((step, size))
        return [Number(step)] * size


class Slope(EpisodeLearner):
    """Has a gradient of a given length; records what the training loop tells it."""

    losses = None  # not asked: the outer loss is all there is

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


def test_the_encoder_ends_with_the_weights_of_the_best_dev_score_and_stops_when_patience_runs_out():
    """Scored before the first step and after every second one; step 4 is best, and no later one counts for long."""
    learner, snapshots, scores = Slope(1.0), {}, iter([0.9, 0.1, 0.4, 0.3, 0.4])
    heard = Recorder()
    heard.on_dev = lambda step, score, best: snapshots.update({step: (score, weights(learner))})
    plan, pace = Schedule((Phase("train", Plain(), 2),), 20, 1), EvalSchedule(eval_every=2, patience=3)
    outcome = Trainer(learner, PaddedGradients(), plan, Outer(lr=0.1), pace, lambda: next(scores), heard).fit()
    assert {step: score for step, (score, _) in snapshots.items()} == {0: 0.9, 2: 0.1, 4: 0.4, 6: 0.3, 8: 0.4}
    assert (outcome.reason, outcome.steps, outcome.baseline) == ("patience", 8, 0.9)
    assert (outcome.best_step, outcome.best_score) == (4, 0.4)
    assert same(weights(learner), snapshots[4][1])
    assert not same(weights(learner), snapshots[8][1])


def test_without_a_dev_part_a_training_ends_with_the_last_weights_and_tells_no_score():
    learner, benchmark, recipe = start()
    heard = Recorder()
    empty = benchmark.split.dev.select([])
    data = replace(benchmark, split=replace(benchmark.split, dev=empty))
    outcome = factory.fit(learner, data, recipe.model_copy(update={"budget": ONE_PHASE}), callback=heard)
    assert (outcome.steps, outcome.baseline, outcome.best_score, heard.scores) == (3, None, None, [])
    scored, *_ = start()
    factory.fit(scored, benchmark, recipe.model_copy(update={"budget": ONE_PHASE}))
    assert same(weights(learner), weights(scored))  # a single score, at the end, keeps the same weights


def trained(learner, outer, steps=4, size=3, gradients=None):
    """Train a learner for some steps; return the terms of each, and what was asked of the source."""
    source, told = Plain(), []
    recorder = Recorder()
    recorder.on_step = lambda step, total, phase, terms: told.append(terms)
    plan = Schedule((Phase("train", source, max(2, steps // 2)),), steps, size)
    pace = EvalSchedule(eval_every=0, patience=0)
    gradients = gradients or PaddedGradients()
    outcome = Trainer(learner, gradients, plan, outer, pace, dev=lambda: 0.5, callback=recorder).fit()
    assert (outcome.steps, outcome.reason) == (steps, "finished")
    return told, source.asked


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


class Words(EpisodeLearner):
    """Draws a few of its encoder's words for an episode."""

    losses = None  # not asked: the outer loss is all there is

    def __init__(self):
        super().__init__(SmallEncoder(), Loss(), None)
        self.table = self.encoder.embedder.tokens.weight

    def outer_loss(self, episodes):
        draw = torch.Generator().manual_seed(episodes[0])
        ids = torch.randint(VOCABULARY // 2, (3, TOKENS), generator=draw) + episodes[0] % 3
        wanted = torch.randn(3, self.table.shape[1], generator=draw, dtype=torch.float64)
        return OuterLoss((self.encoder.embedder({"input_ids": ids}) * wanted).sum())


def as_rows(learner, episodes, *_):
    """Take the outer gradient, of the word table as rows that hold only the words of the step."""
    loss = padded(learner, episodes)
    gradient = learner.table.grad.to_sparse(1)
    twice = gradient.indices().repeat(1, 2), gradient.values().repeat(2, 1) / 2  # as where two were added
    learner.table.grad = torch.sparse_coo_tensor(*twice, gradient.shape, check_invariants=True)
    return loss


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weight_decay": 0.1, "exempt_bias_and_norm": True, "clip": 0.5, "warmup": 0.2, "decay": "cosine"},
        {"optimizer": "lars", "weight_decay": 0.1, "clip": 0.5},
    ],
)
def test_a_word_table_with_a_gradient_of_rows_is_trained_as_with_the_whole_one(settings):
    rowwise, full, start = Words(), Words(), weights(Words())
    (rows, _), (plain, _) = (
        trained(learner, Outer(lr=0.05, **settings), steps=12, size=1, gradients=gradients)
        for learner, gradients in ((rowwise, as_rows), (full, None))
    )
    for name, expected in weights(full).items():
        torch.testing.assert_close(weights(rowwise)[name], expected, rtol=1e-12, atol=1e-14)
    assert not torch.equal(weights(full)["tokens.weight"], start["tokens.weight"])
    assert [terms["grad"] for terms in rows] == pytest.approx([terms["grad"] for terms in plain], rel=1e-13)
    assert max(terms["grad"] for terms in rows) > settings.get("clip", 0)


EXPLODING = {case.learner: case for case in (*STEPPING, REPTILE, *PLAIN)}.values()


@pytest.mark.parametrize("case", EXPLODING, ids=str)
def test_a_rate_that_makes_a_learner_explode_is_named_with_the_step(case):
    """The first step makes the weights so large that the second one has no loss."""
    learner = case.learn(copy.deepcopy(encoder_of("bert", torch.float32)))
    episodes = case.episodes(2)
    schedule = Schedule((Phase("train", SimpleNamespace(batch=lambda step, size: episodes), 2),), 3, 1)
    pace = EvalSchedule(eval_every=0, patience=0)
    gradients = OuterGradients(learner.encoder)
    with pytest.raises(NonFiniteError, match=r"train (loss|gradient norm) at outer step [23] is .* Try a smaller rate"):
        Trainer(learner, gradients, schedule, Outer(lr=1e30), pace, lambda: 0.5, Recorder()).fit()


@pytest.mark.parametrize("slopes", [[torch.nan, torch.nan], [torch.inf, torch.inf], [torch.inf, 1.0], [1.0, torch.nan]])
def test_slopes_that_are_not_finite_make_the_gradient_so_whether_or_not_they_are_equal(slopes):
    class Weighed(type(STEPPING[0].learn(encoder_of("bert", torch.float32)))):
        def combine(self, values, episodes):
            return OuterLoss((values["task"] * torch.tensor(slopes)).sum(), {})

    encoder = encoder_of("bert", torch.float32)
    learner = Weighed(encoder, Loss(), Weighed.Options(inner_lr=0.05))
    found = outer(learner, STEPPING[0].episodes(2), OuterGradients(encoder))
    assert all(gradient.isnan().any() for gradient in found.dense.values())


@pytest.mark.parametrize(
    ("loss", "slope", "says"),
    [
        (torch.nan, 1.0, "loss at outer step 1 is nan"),
        (torch.inf, 1.0, "loss at outer step 1 is inf"),
        (1.0, torch.nan, "gradient norm at outer step 1 is nan"),
        (1.0, torch.inf, "gradient norm at outer step 1 is inf"),
    ],
)
def test_a_loss_or_gradient_that_is_not_finite_stops_before_the_update(monkeypatch, loss, slope, says):
    learner, benchmark, recipe = start()
    before = weights(learner)
    some = next(p for _, p in learner.named_parameters())

    def spoiled(learner, episodes, *_):
        some.grad = torch.full_like(some, slope)
        return OuterLoss(torch.tensor(loss))

    monkeypatch.setattr(factory, "make_gradients", lambda *_: spoiled)
    with pytest.raises(NonFiniteError, match=f"meta-train {says}"):
        factory.fit(learner, benchmark, recipe)
    assert same(weights(learner), before)


@pytest.mark.slow
def test_held_out_dev_groups_are_never_in_a_meta_valid_episode(monkeypatch):
    learner, _, recipe = start("maml-tiny", "trans", "budget.dev_holdout=0.4")
    benchmark = load_benchmark("demo", "trans")  # with all five articles in dev
    seen = set()

    def watched(learner, episodes, *_):
        seen.update(t.question.group for e in episodes for s in e.sets for t in s.examples)
        return padded(learner, episodes)

    monkeypatch.setattr(factory, "make_gradients", lambda *_: watched)
    factory.fit(learner, benchmark, recipe)
    dev = benchmark.split.dev.groups
    held = set(dev[-round(0.4 * len(dev)) :])
    assert len(held) == 2
    assert not seen & held
    assert seen & (set(dev) - held)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    ends = []
    for seed in (0, 1):
        learner, benchmark, recipe = start()
        factory.fit(learner, benchmark, recipe, seed=seed)
        ends.append(weights(learner))
    assert same(ends[0], whole()[0])
    assert not same(ends[0], ends[1])


@pytest.mark.slow
def test_bf16_runs_in_first_order_and_is_refused_in_second():
    learner, benchmark, recipe = start()
    exact, *_ = start()
    factory.fit(learner, benchmark, recipe, precision="bfloat16", max_steps=2)
    factory.fit(exact, benchmark, recipe, max_steps=2)
    assert not same(weights(learner), weights(exact))
    assert all(torch.isfinite(value).all() for value in weights(learner).values())
    learner, benchmark, recipe = start("maml-tiny", "trans", "options.first_order=false")
    with pytest.raises(ConfigError, match="bfloat16 needs first order"):
        factory.fit(learner, benchmark, recipe, precision="bfloat16")


@pytest.mark.slow
def test_dev_scores_while_training_have_the_precision_of_the_run(monkeypatch):
    learner, benchmark, recipe = start("fine-tune-tiny", "mono-bi", "budget.meta_valid=0", "budget.eval_every=0")
    asked = []
    monkeypatch.setattr(
        factory, "evaluate", lambda *args, **keys: asked.append(keys["precision"]) or evaluate(*args, **keys)
    )
    factory.fit(learner, benchmark, recipe, max_steps=1, precision="bfloat16")
    assert asked == ["bfloat16"] * 2  # before and after the step
