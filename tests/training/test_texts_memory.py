"""What a step is said to take where a few texts at a time are computed again, and who cannot do so."""

import logging

import pytest

from helpers.gradients import Case, encoder_of
from helpers.training import start
from metasearch.errors import ConfigError
from metasearch.fast import FastGradients
from metasearch.jobs import compose
from metasearch.learners.gradients import ReferenceGradients
from metasearch.runs.ranks import Rank
from metasearch.spec.recipe import Outer
from metasearch.training.activations import groups_of, tokens_of
from metasearch.training.memory import step_memory

OUTER = Outer(lr=1e-3)
MOST = 30
"""Tokens of the longest text of these cases."""
MANY = Case("distill", "translations", (24,))


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch):
    """Compute a few tokens at a time."""
    for place in ("metasearch.fast.encoder", "metasearch.training.memory"):
        monkeypatch.setattr(f"{place}.most_tokens", lambda device: MOST)


def activations(learner, case, checkpointing, rank=None):
    engine = FastGradients(learner.encoder, workers=1, checkpointing=checkpointing)
    given = {} if rank is None else {"rank": rank}
    return step_memory(learner, engine, case.episodes(), OUTER, **given).parts["activations"]


@pytest.mark.parametrize(
    ("case", "options"), [(Case("fine-tune", sizes=(9,)), {}), (Case("maml"), {"inner_steps": 2}), (MANY, {})], ids=str
)
def test_a_few_tokens_are_counted_of_those_of_the_largest_set(case, options):
    learner = case.learn(encoder_of("bert", layers=2), **options)
    whole = max(tokens_of(learner.encoder, group, padded=False) for group in groups_of(learner, case.episodes()))
    share = activations(learner, case, "texts") / activations(learner, case, "off")
    assert share == pytest.approx(MOST / whole, rel=0.05)


def test_processes_that_share_a_batch_compute_as_many_texts_at_a_time_as_one_alone():
    learner = MANY.learn(encoder_of("bert", layers=2))
    alone, one_of_two = (activations(learner, MANY, "texts", rank) for rank in (Rank(), Rank(1, 2, 1, 1)))
    assert one_of_two == pytest.approx(alone, rel=0.01)


def test_where_a_few_texts_cannot_be_apart_all_are_counted():
    """In second order the graph of an inner gradient keeps them."""
    case = Case("maml")
    learner = case.learn(encoder_of("bert", layers=2), inner_steps=1, first_order=False)
    assert activations(learner, case, "texts") == pytest.approx(activations(learner, case, "off"), rel=0.05)


def test_texts_are_refused_by_gradients_that_encode_a_set_at_once():
    learner, benchmark, recipe = start()
    with pytest.raises(ConfigError, match="--checkpointing texts is of fast gradients, which there are none of here"):
        compose.fit(learner, benchmark, recipe, max_steps=1, checkpointing="texts", gradients="reference")
    with pytest.raises(ConfigError, match="checkpointing 'texts' is of fast gradients"):
        ReferenceGradients("texts")(learner, Case("maml").episodes())


def test_a_training_says_that_a_few_texts_are_computed_again(caplog):
    caplog.set_level(logging.INFO)
    compose.fit(*start(), max_steps=1, checkpointing="texts")
    (line,) = [message for message in caplog.messages if message.startswith("memory: ")]
    assert line.endswith("; a few texts at a time are computed again on the way back")
