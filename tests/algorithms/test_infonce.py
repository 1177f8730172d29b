"""InfoNCE in the batch: which answers are wrong, its value worked out, and its gradient through MAML."""

import math

import pytest
import torch
from torch.func import functional_call

from helpers.reference import assert_same, distance, gradients, learned, weights_of
from helpers.small import SmallEncoder, episode
from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.infonce import InfoNCE
from metasearch.algorithms.maml import MAML
from metasearch.config.arrangement import Arrangement
from metasearch.config.recipe import Loss
from metasearch.data.records import Candidate, Question
from metasearch.episodes.episode import Episode, LabelledSet, Triplet
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


def batch(name, size, count=2):
    """Return an episode of some sets of triplets in which questions and answers stand more than once.

    To the first question the last candidate of all is an answer, too, and stands as a negative alone.
    """
    variant = Arrangement.parse("el_el -> el_el").variants[0]
    asked = [Question(f"{i}", "el", f"{name} question {i // 2}", "a") for i in range(size)]
    answers = [Candidate(f"{i}", "el", f"{name} answer {i}", "a") for i in range(size + 2)]
    own = [(answers[-1].text, "an answer that no set has") if i == 0 else () for i in range(size)]
    sets = [
        LabelledSet(variant, tuple(Triplet(asked[i], answers[i // 2 + j], answers[i + 2], own[i]) for i in range(size)))
        for j in range(count)
    ]
    return Episode(Arrangement((variant,) * count), tuple(sets))


def by_hand(encoder, weights, examples):
    """Return the mean over triplets of −log of the share of the positive among it and the wrong answers."""

    def embed(role, text):
        return functional_call(encoder.embedder, weights, (encoder.features([text], role),))[0]

    triplets = [(t.question.text, t.positive.text, t.negative.text) for t in examples.examples]
    everything = {text for _, *answers in triplets for text in answers}
    total = 0.0
    labelled = {t.question.text: set(t.answers) for t in reversed(examples.examples)}
    for question, positive, _ in triplets:
        right = {p for q, p, _ in triplets if q == question} | labelled[question]
        vector = embed("question", question)
        score = {
            text: torch.exp((vector * embed("candidate", text)).sum() / TEMPERATURE)
            for text in sorted((everything - right) | {positive})
        }
        total = total - torch.log(score[positive] / sum(score.values())) / len(triplets)
    return total


@pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
def test_maml_learns_by_it_with_the_gradient_written_out_by_hand(first_order):
    """Two inner steps on the support, in float64; `learned` holds the fast gradient to the reference, too."""
    encoder, episodes, rate = SmallEncoder(), [batch("a", 4), batch("b", 3)], 0.6
    start = weights_of(encoder.embedder)

    def outer(first_order):
        losses = []
        for one in episodes:
            weights = start
            for _ in range(2):
                steps = gradients(by_hand(encoder, weights, one.sets[0]), weights, create_graph=True)
                steps = {n: s.detach() for n, s in steps.items()} if first_order else steps
                weights = {name: weight - rate * steps[name] for name, weight in weights.items()}
            losses.append(by_hand(encoder, weights, one.sets[1]))
        return sum(losses) / len(losses)

    options = MAML.Options(inner_lr=rate, inner_steps=2, first_order=first_order)
    total, gradient = learned(MAML(encoder, INFONCE, options), episodes)

    assert total == pytest.approx(outer(first_order).item(), rel=1e-10)
    assert_same(gradient, gradients(outer(first_order), start), 1e-10)
    assert distance(gradient, gradients(outer(not first_order), start)) > 1e-3


def test_scored_pairs_have_no_questions():
    learner = FineTune(SmallEncoder(), INFONCE, FineTune.Options())
    with pytest.raises(ConfigError, match="the loss is taken of question, positive; the examples have text1, text2"):
        learner.outer_loss([episode("a", "pairs")])


def test_what_one_example_says_of_its_question_holds_for_all_that_ask_it():
    expected = (entropy("q", "p", "n") + entropy("q", "m", "n") + entropy("r", "n", "p", "s", "m")) / 3
    found = loss_of([("q", "p", "n"), ("q", "m", "n"), ("r", "n", "s")], answers=["", "s", ""])
    assert found == pytest.approx(expected, rel=1e-12)
