"""The losses against the formulas of their docstrings, on vectors small enough to work out by hand."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.paper import CosineMSE, Triplet

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


def test_cosine_mse_has_the_right_gradient():
    sides = [random_unit_vectors(seed).requires_grad_() for seed in (1, 2)]
    gold = torch.linspace(0, 1, 5, dtype=torch.float64)

    assert torch.autograd.gradcheck(lambda a, b: cosine_mse(a, b, gold), sides)
    assert torch.autograd.gradgradcheck(lambda a, b: cosine_mse(a, b, gold), sides)


@pytest.mark.parametrize("distance", DISTANCES)
def test_triplet_loss_is_the_mean_over_triplets_with_satisfied_ones_as_zero(distance):
    """Swapping positive and negative turns a gap of g into −g, so the losses are max(m − g, 0) = 0 and m + g."""
    gap = {"euclidean": math.sqrt(2) - math.sqrt(0.8), "cosine": 0.6}[distance]
    options = dict(margin=0.5, distance=distance)

    loss = triplet_loss(vectors(QUERY, QUERY), vectors(POSITIVE, NEGATIVE), vectors(NEGATIVE, POSITIVE), options)

    assert loss.item() == pytest.approx((0 + 0.5 + gap) / 2, abs=4 * EPS)
