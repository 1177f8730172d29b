"""InfoNCE in the batch: which answers are wrong, and its value worked out; `test_aligned` has its gradient."""

import math

import pytest
import torch

from helpers.small import SmallEncoder, episode
from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.infonce import InfoNCE
from metasearch.config.recipe import Loss
from metasearch.errors import ConfigError

ANGLE = {"q": 0.0, "r": 1.0, "p": 0.2, "s": 1.5, "n": 0.7, "m": 2.2}
"""Texts as angles on the unit circle, so that every cosine is that of a difference."""
TEMPERATURE = 0.5
INFONCE = Loss(name="infonce", temperature=TEMPERATURE)


def loss_of(triplets, columns=("question", "positive", "negative"), answers=None):
    """Return the loss of triplets of texts; `answers` are the labelled ones of each, where they are said."""
    number = {text: i for i, text in enumerate(ANGLE)}
    texts = {name: list(column) for name, column in zip(columns, zip(*triplets, strict=True), strict=True)}
    vectors = {
        name: torch.tensor([[math.cos(ANGLE[t]), math.sin(ANGLE[t])] for t in column], dtype=torch.float64)
        for name, column in texts.items()
    }
    numbers = {name: torch.tensor([number[t] for t in column]) for name, column in texts.items()}
    labelled = None if answers is None else torch.tensor([[text in each for text in ANGLE] for each in answers])
    batch = EmbeddedSet(vectors, numbers, answers=labelled)
    return InfoNCE(InfoNCE.Options(temperature=TEMPERATURE))(batch).item()


def entropy(question, right, *wrong):
    """Return −log of the share of the right answer among all, exp(cos / temperature) each."""
    score = {text: math.exp(math.cos(ANGLE[question] - ANGLE[text]) / TEMPERATURE) for text in (right, *wrong)}
    return -math.log(score[right] / sum(score.values()))


def test_wrong_answers_are_the_positives_of_other_questions_and_all_negatives():
    expected = (entropy("q", "p", "s", "n", "m") + entropy("r", "s", "p", "n", "m")) / 2
    assert loss_of([("q", "p", "n"), ("r", "s", "m")]) == pytest.approx(expected, rel=1e-12)


def test_a_positive_with_the_text_of_ones_own_is_no_wrong_answer():
    expected = (entropy("q", "p", "n", "m") + entropy("r", "p", "n", "m")) / 2
    assert loss_of([("q", "p", "n"), ("r", "p", "m")]) == pytest.approx(expected, rel=1e-12)


def test_another_answer_to_the_same_question_such_as_a_translation_is_no_wrong_answer():
    """Nor is it where it stands as the negative of another question."""
    expected = (entropy("q", "p", "m", "n") + entropy("q", "s", "m", "n") + entropy("r", "m", "p", "s", "n")) / 3
    assert loss_of([("q", "p", "n"), ("q", "s", "n"), ("r", "m", "s")]) == pytest.approx(expected, rel=1e-12)


def test_a_labelled_answer_is_no_wrong_one_though_no_example_has_it_as_its_positive():
    """Answer s to question q stands as the negative of r alone; of r the labels say no more than its positive."""
    expected = (entropy("q", "p", "n", "m") + entropy("r", "m", "p", "s", "n")) / 2
    assert loss_of([("q", "p", "n"), ("r", "m", "s")], answers=["ps", ""]) == pytest.approx(expected, rel=1e-12)


def test_a_wrong_answer_that_stands_often_counts_once():
    expected = (2 * entropy("q", "p", "s", "n", "m") + entropy("r", "s", "p", "n", "m")) / 3
    assert loss_of([("q", "p", "n"), ("q", "p", "m"), ("r", "s", "n")]) == pytest.approx(expected, rel=1e-12)


def test_scored_pairs_have_no_questions():
    learner = FineTune(SmallEncoder(), INFONCE, FineTune.Options())
    with pytest.raises(ConfigError, match="the loss is taken of question, positive; the examples have text1, text2"):
        learner.outer_loss([episode("a", "pairs")])


def test_what_one_example_says_of_its_question_holds_for_all_that_ask_it():
    expected = (entropy("q", "p", "n") + entropy("q", "m", "n") + entropy("r", "n", "p", "s", "m")) / 3
    found = loss_of([("q", "p", "n"), ("q", "m", "n"), ("r", "n", "s")], answers=["", "s", ""])
    assert found == pytest.approx(expected, rel=1e-12)
