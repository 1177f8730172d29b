"""The losses against the formulas of their docstrings, on vectors small enough to work out by hand."""

import math

import pytest
import torch

from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.paper import Triplet

EPS = 1e-6
DISTANCES = ["euclidean", "cosine"]
QUERY, POSITIVE, NEGATIVE = [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]
"""‖q − p‖ = √0.8, cos(q, p) = 0.6; ‖q − n‖ = √2, cos(q, n) = 0."""


def triplet_loss(question, positive, negative, options):
    columns = {"question": question, "positive": positive, "negative": negative}
    return Triplet(Triplet.Options(**options))(EmbeddedSet(columns))


def vectors(*rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("distance", DISTANCES)
def test_gradient_is_finite_when_question_and_answer_coincide(distance):
    """The norm has no derivative at 0; the ε inside keeps away from there."""
    query, positive = (vectors(QUERY).requires_grad_() for _ in range(2))

    triplet_loss(query, positive, vectors(NEGATIVE), dict(margin=2, distance=distance)).backward()

    assert query.grad.isfinite().all()
    assert positive.grad.isfinite().all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_triplet_loss_is_the_mean_over_triplets_with_satisfied_ones_as_zero(distance):
    """Swapping positive and negative turns a gap of g into −g, so the losses are max(m − g, 0) = 0 and m + g."""
    gap = {"euclidean": math.sqrt(2) - math.sqrt(0.8), "cosine": 0.6}[distance]
    options = dict(margin=0.5, distance=distance)

    loss = triplet_loss(vectors(QUERY, QUERY), vectors(POSITIVE, NEGATIVE), vectors(NEGATIVE, POSITIVE), options)

    assert loss.item() == pytest.approx((0 + 0.5 + gap) / 2, abs=4 * EPS)
