"""The losses against the formulas of their docstrings, on vectors small enough to work out by hand."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.cosine_mse import CosineMSE
from metasearch.algorithms.losses.triplet import Triplet

EPS = 1e-6
DISTANCES = ["euclidean", "cosine"]
QUERY, POSITIVE, NEGATIVE = [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]
"""‖q − p‖ = √0.8, cos(q, p) = 0.6; ‖q − n‖ = √2, cos(q, n) = 0."""


def triplet_loss(question, positive, negative, options):
    columns = {"question": question, "positive": positive, "negative": negative}
    return Triplet(Triplet.Options(**options))(EmbeddedSet(columns))


def cosine_mse(first, second, gold):
    return CosineMSE(CosineMSE.Options())(EmbeddedSet({"text1": first, "text2": second}, gold=gold))


def vectors(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def on_circle(angle):
    return vectors([math.cos(angle), math.sin(angle)])


def random_unit_vectors(seed, rows=5, dimensions=4):
    drawn = torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, dimensions)))
    return F.normalize(drawn, dim=1)


@pytest.mark.parametrize("margin", [0.6, 1.0, 2.5])
def test_euclidean_triplet_loss_is_near_minus_far_plus_margin(margin):
    """max(‖q − p + ε‖ − ‖q − n + ε‖ + m, 0); the distances are √0.8 ≈ 0.894 and √2 ≈ 1.414."""
    near = math.sqrt((1 - 0.6 + EPS) ** 2 + (0 - 0.8 + EPS) ** 2)
    far = math.sqrt((1 - 0 + EPS) ** 2 + (0 - 1 + EPS) ** 2)

    loss = triplet_loss(vectors(QUERY), vectors(POSITIVE), vectors(NEGATIVE), dict(margin=margin))

    assert loss.item() == pytest.approx(near - far + margin, rel=1e-12)
    assert loss.item() == pytest.approx(math.sqrt(0.8) - math.sqrt(2) + margin, abs=4 * EPS)


@pytest.mark.parametrize("margin", [0.7, 1.0, 2.5])
def test_cosine_triplet_loss_is_negative_minus_positive_similarity_plus_margin(margin):
    """max(cos(q, n) − cos(q, p) + m, 0)."""
    options = dict(margin=margin, distance="cosine")

    loss = triplet_loss(vectors(QUERY), vectors(POSITIVE), vectors(NEGATIVE), options)

    assert loss.item() == pytest.approx(0 - 0.6 + margin, rel=1e-12)


@pytest.mark.parametrize(("distance", "gap"), [("euclidean", math.sqrt(2) - math.sqrt(0.8)), ("cosine", 0.6)])
def test_a_triplet_is_satisfied_once_the_gap_reaches_the_margin(distance, gap):
    def loss(margin):
        options = dict(margin=margin, distance=distance)
        return triplet_loss(vectors(QUERY), vectors(POSITIVE), vectors(NEGATIVE), options).item()

    assert loss(gap - 0.01) == 0
    assert loss(gap + 0.01) == pytest.approx(0.01, abs=4 * EPS)


@pytest.mark.parametrize("distance", DISTANCES)
def test_triplet_loss_is_the_mean_over_triplets_with_satisfied_ones_as_zero(distance):
    """Swapping positive and negative turns a gap of g into −g, so the losses are max(m − g, 0) = 0 and m + g."""
    gap = {"euclidean": math.sqrt(2) - math.sqrt(0.8), "cosine": 0.6}[distance]
    options = dict(margin=0.5, distance=distance)

    loss = triplet_loss(vectors(QUERY, QUERY), vectors(POSITIVE, NEGATIVE), vectors(NEGATIVE, POSITIVE), options)

    assert loss.item() == pytest.approx((0 + 0.5 + gap) / 2, abs=4 * EPS)


@given(to_positive=st.floats(0.05, 3.0), closer=st.floats(0.1, 0.9), to_negative=st.floats(-3.1, 3.1).filter(abs))
@pytest.mark.parametrize("distance", DISTANCES)
def test_moving_the_positive_closer_lowers_the_loss(distance, to_positive, closer, to_negative):
    """On the circle, with a margin that no triplet satisfies: so the loss has the sign of a distance for both."""
    options = dict(margin=3, distance=distance)
    query, negative = on_circle(0), on_circle(to_negative)

    before = triplet_loss(query, on_circle(to_positive), negative, options)
    after = triplet_loss(query, on_circle(closer * to_positive), negative, options)

    assert after < before


@pytest.mark.parametrize("distance", DISTANCES)
def test_moving_the_negative_away_lowers_the_loss(distance):
    options = dict(margin=3, distance=distance)
    losses = [
        triplet_loss(on_circle(0), on_circle(0.5), on_circle(angle), options).item()
        for angle in np.linspace(0.1, math.pi, 8)
    ]

    assert all(further < nearer for nearer, further in pairwise(losses))


@pytest.mark.parametrize("distance", DISTANCES)
def test_triplet_loss_against_numpy_on_random_unit_vectors(distance):
    query, positive, negative = (random_unit_vectors(seed, rows=32) for seed in (1, 2, 3))
    q, p, n = (side.numpy() for side in (query, positive, negative))
    if distance == "euclidean":
        gaps = np.linalg.norm(q - p + EPS, axis=1) - np.linalg.norm(q - n + EPS, axis=1)
    else:
        gaps = (q * n).sum(axis=1) - (q * p).sum(axis=1)
    hinges = np.maximum(gaps + 0.3, 0)
    assert 0 < (hinges > 0).sum() < len(hinges)

    assert triplet_loss(query, positive, negative, dict(margin=0.3, distance=distance)).item() == pytest.approx(
        hinges.mean(), rel=1e-12
    )


@pytest.mark.parametrize("distance", DISTANCES)
def test_triplet_loss_has_the_right_gradient(distance):
    options = dict(margin=0.3, distance=distance)
    sides = [random_unit_vectors(seed).requires_grad_() for seed in (1, 2, 3)]
    assert triplet_loss(*sides, options) > 0

    assert torch.autograd.gradcheck(lambda q, p, n: triplet_loss(q, p, n, options), sides)
    assert torch.autograd.gradgradcheck(lambda q, p, n: triplet_loss(q, p, n, options), sides)


@pytest.mark.parametrize("distance", DISTANCES)
def test_gradient_is_finite_when_question_and_answer_coincide(distance):
    """The norm has no derivative at 0; the ε inside keeps away from there."""
    query, positive = (vectors(QUERY).requires_grad_() for _ in range(2))

    triplet_loss(query, positive, vectors(NEGATIVE), dict(margin=2, distance=distance)).backward()

    assert query.grad.isfinite().all()
    assert positive.grad.isfinite().all()


def test_cosine_mse_is_the_mean_squared_gap_between_cosine_and_gold():
    """cos((1, 0), (3, 4)) = 3/5 and cos((0, 2), (0, −1)) = −1, against gold 0.9 and 0.25; lengths do not count."""
    loss = cosine_mse(vectors([1, 0], [0, 2]), vectors([3, 4], [0, -1]), vectors(0.9, 0.25))

    assert loss.item() == pytest.approx(((3 / 5 - 0.9) ** 2 + (-1 - 0.25) ** 2) / 2, rel=1e-12)


@pytest.mark.parametrize(("gold", "direction"), [(1.0, -1), (0.0, 1)])
def test_cosine_mse_pulls_the_cosine_towards_gold(gold, direction):
    """At 45° the cosine is √½; towards gold 1 the angle must shrink, towards gold 0 it must grow."""
    step = 0.01
    here, there = (
        cosine_mse(on_circle(0), on_circle(angle), vectors(gold))
        for angle in (math.pi / 4, math.pi / 4 + direction * step)
    )

    assert there < here


def test_cosine_mse_has_the_right_gradient():
    sides = [random_unit_vectors(seed).requires_grad_() for seed in (1, 2)]
    gold = torch.linspace(0, 1, 5, dtype=torch.float64)

    assert torch.autograd.gradcheck(lambda a, b: cosine_mse(a, b, gold), sides)
    assert torch.autograd.gradgradcheck(lambda a, b: cosine_mse(a, b, gold), sides)
