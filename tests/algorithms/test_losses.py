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
