"""What a dev score leaves as it was, what it tells the log, and when it warns of a collapse."""

import logging

import numpy as np
import pytest
import torch

from helpers.dev import PAIRS, SCORED, dev, distilled, fresh
from metasearch.algorithms.ema import EMA
from metasearch.algorithms.fine_tune import FineTune
from metasearch.config.recipe import Loss
from metasearch.encoders.builtin import tiny


@pytest.fixture
def encoder():
    return fresh()


CASES = [
    ("accuracy", PAIRS, distilled),
    ("cosine", PAIRS, distilled),
    ("loss", PAIRS, distilled),
    ("accuracy", PAIRS, lambda encoder: EMA(encoder, Loss(), EMA.Options())),
    ("loss", PAIRS, lambda encoder: EMA(encoder, Loss(), EMA.Options())),
    ("spearman", SCORED, lambda encoder: FineTune(encoder, Loss(), FineTune.Options())),
    ("loss", SCORED, lambda encoder: FineTune(encoder, Loss(), FineTune.Options())),
]


@pytest.mark.parametrize(
    ("monitor", "pairs", "made", "training"), [(*case, i % 2 == 0) for i, case in enumerate(CASES)]
)
def test_a_score_is_without_dropout_and_leaves_weights_mode_gradients_and_dropout_to_come(
    encoder, monitor, pairs, made, training
):
    learner = made(encoder)
    calm = dev(learner, pairs, monitor)()
    weights = {name: value.clone() for name, value in learner.encoder.embedder.state_dict().items()}
    learner.train(training)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert dev(learner, pairs, monitor)() == calm
    assert torch.equal(torch.get_rng_state(), before)
    assert encoder.embedder.training is training
    assert all(module.training is training for module in encoder.embedder.modules())
    assert all(torch.equal(value, weights[name]) for name, value in encoder.embedder.state_dict().items())
    assert all(parameter.grad is None for parameter in encoder.embedder.parameters())


@pytest.mark.parametrize("monitor", ["accuracy", "cosine", "loss"])
def test_the_log_hears_the_score_and_the_shape_of_the_translations_vectors(encoder, monitor):
    heard = []
    score = dev(distilled(encoder), PAIRS, monitor, heard=heard)()
    (event,) = heard
    vectors = encoder.encode([p.target for p in PAIRS], "text", "pooled").astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert event[monitor] == score
    assert event["spread"] == pytest.approx(np.sqrt(((unit - unit.mean(0)) ** 2).sum(1).mean()), rel=1e-4)
    assert {"spread", "rank"} < event.keys()
    assert len(event) == 4  # the score, and three numbers of the shape


def collapse(encoder):
    """Make every token nearly the same, in every place."""
    with torch.no_grad():
        block = encoder.model[0].auto_model.embeddings
        block.word_embeddings.weight.mul_(1e-3)
        block.position_embeddings.weight.mul_(0).add_(torch.linspace(-1, 1, tiny.DIMENSIONS))


def test_vectors_that_collapse_while_they_are_trained_are_reported(encoder, caplog):
    measured = dev(distilled(encoder), PAIRS, "accuracy")
    with caplog.at_level(logging.WARNING, logger="metasearch"):
        measured()
        assert not caplog.records
        collapse(encoder)
        measured()
    (record,) = caplog.records
    assert record.getMessage().startswith("collapse: all vectors are nearly the same")
    assert "the learning rate is too high" in record.getMessage()
