"""A word table whose gradient holds only the rows of a step's words is trained as with a whole one."""

import itertools

import pytest
import torch

from helpers.padded import padded
from helpers.small import TOKENS, VOCABULARY, SmallEncoder
from helpers.training import Recorder, weights
from metasearch.algorithms.base import EpisodeLearner, OuterLoss
from metasearch.config.recipe import EvalSchedule, Loss, Outer
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Trainer


class Words(EpisodeLearner):
    """Draws a few of its encoder's words for an episode, and gives the gradient of the word table as rows or whole."""

    losses = None  # not asked: the outer loss is all there is

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


def gradients(learner, episodes, *_):
    """Take the outer gradient, that of the word table as rows where the learner says so."""
    loss = padded(learner, episodes)
    if learner.by_rows:
        gradient = learner.table.grad.to_sparse(1)
        twice = gradient.indices().repeat(1, 2), gradient.values().repeat(2, 1) / 2  # as where two were added
        learner.table.grad = torch.sparse_coo_tensor(*twice, gradient.shape, check_invariants=True)
    return loss


class Number(int):
    """An episode that is the number of its step."""

    arrangement = "en_en"
    sets = ()


class Numbered:
    """A source of such episodes."""

    def batch(self, step, size):
        return [Number(step)] * size


SCORES = itertools.count()  # ever better, so that the last weights stay


def fit_words(learner, outer, gradients=gradients):
    """Train on words; return the terms of each step."""
    told, hear = [], Recorder()
    hear.on_step = lambda step, total, phase, terms: told.append(terms)
    plan = Schedule((Phase("train", Numbered(), 12),), 12, 1)
    Trainer(learner, gradients, plan, outer, EvalSchedule(eval_every=2, patience=0), lambda: next(SCORES), hear).fit()
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
