"""InfoNCE and the terms that align questions with translations: worked out, by hand, and in the training."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call

from helpers.gradients import Case, encoder_of, error, on_both, outer
from helpers.reference import assert_same, distance, gradients, learned, weights_of
from helpers.small import SmallEncoder
from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.infonce import InfoNCE, contrast, divergence
from metasearch.algorithms.maml import MAML
from metasearch.config.arrangement import Arrangement
from metasearch.config.recipe import Loss
from metasearch.data.records import Candidate, Question
from metasearch.episodes.episode import TRIPLET_ROLES, Episode, LabelledSet, Triplet
from metasearch.training.outer_gradients import OuterGradients

ANGLE = {"q": 0.0, "r": 1.0, "t": 0.4, "u": 1.7, "v": -0.3, "p": 0.2, "s": 1.5, "n": 0.7, "m": 2.2}
"""Texts as angles on the unit circle, so that every cosine is that of a difference."""
NUMBER = {text: i for i, text in enumerate(ANGLE)}
HEAT = 0.5


def at(texts):
    """Return the vectors of texts, a character each, `(N, 2)`."""
    return torch.tensor([[math.cos(ANGLE[t]), math.sin(ANGLE[t])] for t in texts], dtype=torch.float64)


def number(texts):
    return torch.tensor([NUMBER[text] for text in texts])


def entropy(text, own, *wrong):
    """Return −log of the share of a text's own one among all, exp(cos / temperature) each."""
    score = {other: math.exp(math.cos(ANGLE[text] - ANGLE[other]) / HEAT) for other in (own, *wrong)}
    return -math.log(score[own] / sum(score.values()))


def jensen_shannon(first, second):
    """Return JS of two distributions, lists that add up to 1, as the entropy of their mean less their mean entropy."""

    def uncertain(shares):
        return -sum(share * math.log(share) for share in shares)

    middle = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    return uncertain(middle) - (uncertain(first) + uncertain(second)) / 2


def shares(text, candidates):
    scores = [math.exp(math.cos(ANGLE[text] - ANGLE[other]) / HEAT) for other in candidates]
    return [score / sum(scores) for score in scores]


@pytest.mark.parametrize(
    ("triplets", "answers", "rows"),
    [
        # Wrong answers are the positives of other questions and all negatives.
        ("qpn rsm", None, "qpsnm rspnm"),
        # A positive with the text of one's own is no wrong answer,
        ("qpn rpm", None, "qpnm rpnm"),
        # nor is another answer to the same question, such as a translation, or where it is another's negative,
        ("qpn qsn rms", None, "qpmn qsmn rmpsn"),
        # nor a labelled answer that no example has as its positive: s answers q, and is the negative of r alone.
        ("qpn rms", ["ps", ""], "qpnm rmpsn"),
        # A wrong answer that stands often counts once.
        ("qpn qpm rsn", None, "qpsnm qpsnm rspnm"),
        # A label of one example holds for all that ask its question.
        ("qpn qmn rns", ["", "s", ""], "qpn qmn rnpsm"),
    ],
)
def test_the_loss_is_the_mean_entropy_of_the_right_among_the_wrong_answers(triplets, answers, rows):
    """Texts are a character each; rows are a question, its answer, and the wrong ones."""
    names, columns = ("question", "positive", "negative"), [*zip(*triplets.split(), strict=True)]
    vectors, numbers = (dict(zip(names, map(of, columns), strict=True)) for of in (at, number))
    labelled = answers and torch.tensor([[text in each for text in ANGLE] for each in answers])
    loss = InfoNCE(InfoNCE.Options(temperature=HEAT))(EmbeddedSet(vectors, numbers, answers=labelled))
    expected = [entropy(*row) for row in rows.split()]
    assert loss.item() == pytest.approx(sum(expected) / len(expected), rel=1e-12)


@pytest.mark.parametrize(
    ("questions", "translations", "there", "back"),
    [
        ("qr", "tu", ["qtu", "rut"], ["tqr", "urq"]),
        # Another translation of the same question is not wrong.
        ("qqr", "tvu", ["qtu", "qvu", "rutv"], ["tqr", "vqr", "urq"]),
        # Nor is a translation of two questions, even if it occurs twice.
        ("qrs", "ttu", ["qtu", "rtu", "sut"], ["tqs", "trs", "usqr"]),
        # Nor is the text itself: the second translation is spelt as the first question.
        ("qr", "tq", ["qt", "rqt"], ["tqr", "qr"]),
    ],
)
def test_infonce_ranks_each_translation_and_each_question_among_those_of_the_set(questions, translations, there, back):
    """Rows: a text, its own counterpart, and the wrong ones."""
    expected = sum(entropy(*row) for row in (*there, *back)) / (2 * len(there))
    vectors, numbers = (at(questions), at(translations)), (number(questions), number(translations))
    assert contrast(*vectors, *numbers, HEAT).item() == pytest.approx(expected, rel=1e-12)


def test_jsd_is_that_of_the_shares_that_candidates_have_of_a_question_and_its_translation():
    expected = [jensen_shannon(shares(q, "psn"), shares(t, "psn")) for q, t in ("qt", "ru")]
    found = divergence(at("qr"), at("tu"), at("psn"), HEAT).item()
    assert found == pytest.approx(sum(expected) / 2, rel=1e-12)


VECTORS = st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).normal(size=(3, 5, 4)))
HEATS = st.floats(0.01, 10)


@given(VECTORS, HEATS)
def test_jsd_is_0_for_equal_vectors_and_at_most_ln_2(drawn, heat):
    q, t, c = map(torch.from_numpy, drawn)
    assert divergence(q, q.clone(), c, heat).item() == pytest.approx(0, abs=1e-13)
    assert -1e-13 < divergence(q, t, c, heat).item() <= math.log(2) + 1e-13


def translated(name, size):
    """Return an episode in which questions, answers and translations stand more than once.

    The last candidate of all is an answer to the first question, too, and stands as a negative only.
    """
    variant = Arrangement.parse("el_el -> el_el").variants[0]
    asked = [Question(f"{i}", "el", f"{name} question {i // 2}", "a") for i in range(size)]
    said = [Question(f"{i}", "hi", f"{name} says {(0, 1, 2, 2)[i % 4]}", "a") for i in range(size)]
    answers = [Candidate(f"{i}", "el", f"{name} answer {i}", "a") for i in range(size + 2)]
    own = [(answers[-1].text, "an answer that no set has") if i == 0 else () for i in range(size)]
    sets = [
        LabelledSet(
            variant, tuple(Triplet(asked[i], answers[i // 2 + j], answers[i + 2], own[i], said[i]) for i in range(size))
        )
        for j in range(2)
    ]
    return Episode(Arrangement((variant, variant)), tuple(sets))


def by_hand(encoder, weights, examples, align):
    """Return InfoNCE of a set and the term that aligns, if any, example by example and text by text."""

    def cosine(first, second):
        return (vector[first] * vector[second]).sum()

    def cross_entropy(anchor, own, wrong, heat):
        score = [torch.exp(cosine(anchor, other) / heat) for other in (own, *sorted(wrong - {own}))]
        return -torch.log(score[0] / sum(score))

    def likely(anchor):
        score = torch.stack([torch.exp(cosine(anchor, other) / HEAT) for other in everything])
        return score / score.sum()

    rows = [example.texts for example in examples.examples]
    role = {text: role for row in rows for text, role in zip(row, [*TRIPLET_ROLES.values(), "question"], strict=True)}
    vector = {
        text: functional_call(encoder.embedder, weights, (encoder.features([text], kind),))[0]
        for text, kind in role.items()
    }
    everything = sorted({text for _, *answers, _ in rows for text in answers})
    labelled = {example.question.text: set(example.answers) for example in reversed(examples.examples)}
    total = 0.0
    for q, p, _, t in rows:
        wrong = set(everything) - {right for asked, right, _, _ in rows if asked == q} - labelled[q]
        total = total + cross_entropy(q, p, wrong, HEAT)
        if align == "none":
            continue
        if align == "infonce":
            there = {said for *_, said in rows} - {said for asked, *_, said in rows if asked == q}
            back = {asked for asked, *_ in rows} - {asked for asked, *_, said in rows if said == t}
            term = (cross_entropy(q, t, there, HEAT) + cross_entropy(t, q, back, HEAT)) / 2
        else:
            first, second = likely(q), likely(t)
            middle = (first + second) / 2
            term = ((first * torch.log(first / middle)).sum() + (second * torch.log(second / middle)).sum()) / 2
        total = total + term
    return total / len(rows)


@pytest.mark.parametrize(("align", "first_order"), [("none", False), ("infonce", True), ("jsd", False)])
def test_maml_learns_by_it_with_the_gradient_written_out_by_hand(align, first_order):
    """Two inner steps on the support, in float64."""
    encoder, episodes, rate = SmallEncoder(), [translated("a", 4), translated("b", 3)], 0.6
    start = weights_of(encoder.embedder)

    def by_hand_outer(first_order):
        losses = []
        for one in episodes:
            weights = start
            for _ in range(2):
                steps = gradients(by_hand(encoder, weights, one.sets[0], align), weights, create_graph=True)
                steps = {n: s.detach() for n, s in steps.items()} if first_order else steps
                weights = {name: weight - rate * steps[name] for name, weight in weights.items()}
            losses.append(by_hand(encoder, weights, one.sets[1], align))
        return sum(losses) / len(losses)

    options = MAML.Options(inner_lr=rate, inner_steps=2, first_order=first_order)
    total, gradient = learned(MAML(encoder, Loss(name="infonce", temperature=HEAT, align=align), options), episodes)

    assert total == pytest.approx(by_hand_outer(first_order).item(), rel=1e-10)
    assert_same(gradient, gradients(by_hand_outer(first_order), start), 1e-10)
    assert distance(gradient, gradients(by_hand_outer(not first_order), start)) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "family", "align"), [("fine-tune", "mpnet", "jsd"), ("maml", "xlm-roberta", "infonce")]
)
def test_the_training_has_the_same_gradient_as_the_formula_also_in_shards(learner, family, align):
    """To 1e-10 in float64, and not that of the loss without the term."""
    case = Case(learner, "translated")
    aligned = case.learn(encoder_of(family), Loss(name="infonce", align=align), inner_steps=2)
    episodes = case.episodes()
    plain, whole = on_both(aligned, episodes)
    cut = outer(aligned, episodes, partial(OuterGradients(aligned.encoder), shards=2))
    for found in (whole, cut):
        assert found.loss.item() == pytest.approx(plain.loss.item(), rel=1e-10)
        assert error(found, plain) < 1e-10
    without = outer(case.learn(encoder_of(family), Loss(name="infonce"), inner_steps=2), episodes)
    assert error(without, plain) > 1e-3
