"""Losses and whole outer gradients of the learners, against meta-learning written out by hand.

The encoder is a small network, or a frozen one with an adapter. MAML-Align has a file of its own. The inner rate is so
large that the inner steps, and the second-order part of the gradient, cannot be missed.
"""

import pytest
import torch

from helpers.reference import Reference, assert_same, distance, gradients, learned, weights_of
from helpers.small import UNUSED, SmallEncoder, adapted_encoder, episode
from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.maml import MAML, MetaSGD
from metasearch.algorithms.reptile import Reptile
from metasearch.config.recipe import Loss

MARGIN = 0.8
LOSS = Loss(margin=MARGIN)
RATE = 0.6
EXACT = 1e-10
BATCHES = {
    "triplets": [episode("a"), episode("b")],
    "pairs": [episode("a", "pairs"), episode("b", "pairs")],
    "three sets": [episode("a", sizes=(4, 3, 2)), episode("b", "pairs", sizes=(4, 3, 2))],
}
ADAPTED = pytest.mark.parametrize(
    ("episodes", "steps"), list(zip(BATCHES.values(), [1, 2, 5], strict=True)), ids=BATCHES
)
"""Kinds of batches, each with another number of inner steps."""


@pytest.fixture(params=[SmallEncoder, adapted_encoder], ids=["small", "adapter"])
def encoder(request):
    return request.param()


@pytest.fixture
def reference(encoder):
    return Reference(encoder, MARGIN)


def query_loss(reference, episodes, weights, rate, steps, first_order, reduction="mean"):
    """L = mean_j (or Σ_j) L_query(θ_j), θ_j after n inner steps on the support set (MAML-Align paper, Algorithm 2).

    Support and query are X and Y and, in an episode of three sets, also Y and Z.
    """
    losses = torch.stack(
        [
            reference.loss(reference.descend(weights, [support] * steps, rate, first_order), query)
            for e in episodes
            for support, query in zip(e.sets[:-1], e.sets[1:], strict=True)
        ]
    )
    return losses.sum() if reduction == "sum" else losses.mean()


@pytest.mark.parametrize("episodes", [*BATCHES.values(), [episode("a", sizes=(3,))]], ids=[*BATCHES, "one set"])
def test_fine_tune_minimises_the_mean_over_all_examples_of_support_and_query(encoder, reference, episodes):
    sets = [examples for e in episodes for examples in e.sets]
    sizes = [len(examples.examples) for examples in sets]
    weights = weights_of(encoder.embedder)
    expected = sum(size * reference.loss(weights, examples) for size, examples in zip(sizes, sets, strict=True)) / sum(
        sizes
    )

    total, gradient = learned(FineTune(encoder, LOSS, FineTune.Options()), episodes)

    assert total == pytest.approx(expected.item(), rel=EXACT)
    assert_same(gradient, gradients(expected, weights), EXACT)


@pytest.mark.parametrize(("first_order", "reduction"), [(True, "mean"), (False, "mean"), (True, "sum")])
@ADAPTED
def test_maml_gradient_is_that_of_the_mean_or_sum_of_query_losses_at_the_adapted_weights(
    encoder, reference, episodes, first_order, steps, reduction
):
    options = MAML.Options(inner_lr=RATE, inner_steps=steps, first_order=first_order, reduction=reduction)
    weights = weights_of(encoder.embedder)
    expected, other = (
        query_loss(reference, episodes, weights, RATE, steps, order, reduction)
        for order in (first_order, not first_order)
    )

    total, gradient = learned(MAML(encoder, LOSS, options), episodes)

    assert total == pytest.approx(expected.item(), rel=EXACT)
    assert_same(gradient, gradients(expected, weights), EXACT)
    assert distance(gradient, gradients(other, weights)) > 1e-3
    assert (
        distance(gradient, gradients(query_loss(reference, episodes, weights, RATE, 0, True, reduction), weights))
        > 1e-3
    )


@pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
@ADAPTED
def test_meta_sgd_learns_weights_and_a_rate_for_each_of_them(encoder, reference, episodes, first_order, steps):
    learner = MetaSGD(encoder, LOSS, MetaSGD.Options(inner_lr=RATE, inner_steps=steps, first_order=first_order))
    with torch.no_grad():
        for i, rate in enumerate(learner.rates.values()):
            rate.copy_(torch.linspace(0.4, 0.8, rate.numel(), dtype=rate.dtype).view_as(rate) + 0.02 * i)
    weights, rates = weights_of(encoder.embedder), dict(learner.rates)

    def of_all(loss):
        both = weights | {f"rate.{name}": rate for name, rate in rates.items()}
        return gradients(loss, both)

    expected, other = (
        query_loss(reference, episodes, weights, rates, steps, o) for o in (first_order, not first_order)
    )

    total, gradient = learned(learner, episodes)

    assert rates.keys() == weights.keys()
    assert total == pytest.approx(expected.item(), rel=EXACT)
    assert_same(gradient, of_all(expected), EXACT)
    assert distance(gradient, of_all(other)) > 1e-3
    assert max(gradient[f"rate.{name}"].norm() for name in weights) > 0


def inner_losses(reference, weights, sets):
    """Return the loss before each of the steps on sets in turn."""
    starts = [reference.descend(weights, sets[:step], RATE, first_order=True) for step in range(len(sets))]
    return [reference.loss(start, examples).item() for start, examples in zip(starts, sets, strict=True)]


@pytest.mark.slow
@ADAPTED
def test_reptile_gradient_is_the_way_from_the_adapted_weights_back_to_the_initial_ones(
    encoder, reference, episodes, steps
):
    """∇ = θ − mean_j θ_j, θ_j after a step on each set of episode j in turn, n times over (Nichol et al., 2018)."""
    weights = weights_of(encoder.embedder)
    adapted = [reference.descend(weights, [*e.sets] * steps, RATE, first_order=True) for e in episodes]
    expected = {name: (start - (adapted[0][name] + adapted[1][name]) / 2).detach() for name, start in weights.items()}

    total, gradient = learned(Reptile(encoder, LOSS, Reptile.Options(inner_lr=RATE, inner_steps=steps)), episodes)

    assert_same(gradient, expected, EXACT)
    inner = [inner_losses(reference, weights, [*e.sets] * steps) for e in episodes]
    assert total == pytest.approx(sum(map(sum, inner)) / sum(map(len, inner)), rel=EXACT)


@pytest.mark.parametrize("learner", [FineTune, MAML, MetaSGD, Reptile])
def test_a_frozen_weight_is_not_learned_and_an_unused_one_gets_no_pull(learner):
    encoder = SmallEncoder()
    options = learner.Options(**({} if learner is FineTune else {"inner_lr": RATE}))
    _, gradient = learned(learner(encoder, LOSS, options), BATCHES["triplets"])

    assert "scale" not in gradient
    assert all(gradient[name].count_nonzero() == 0 for name in UNUSED)
    assert gradient["first.weight"].count_nonzero() > 0


@pytest.mark.parametrize("kind", ["triplets", "pairs"])
def test_texts_that_examples_of_a_set_share_are_encoded_once(kind):
    encoder = SmallEncoder()
    episodes = [episode("a", kind, sizes=(4,))]
    # Four triplets ask two questions and name five answers; four pairs are a chain of five texts.
    distinct = {"triplets": 2 + 5, "pairs": 5}[kind]

    FineTune(encoder, LOSS, FineTune.Options()).outer_loss(episodes)

    assert encoder.rows_encoded == distinct
