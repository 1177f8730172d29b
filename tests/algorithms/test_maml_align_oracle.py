"""MAML-Align's losses and whole outer gradients, against Algorithm 3 written out by hand.

With B episodes (X, Y, Z), θ_T,j after n inner steps on X and θ_S,j after n′ on Y:

    L_task = (Σ_j L_Y(θ_T,j) + Σ_j L_Z(θ_S,j)) / 2B
    L_kd   = (Σ_j L_Y(θ_T,j) − Σ_j L_Y(θ))²
    L      = L_task + λ L_kd
"""

import pytest
import torch

from helpers.reference import Reference, assert_same, distance, gradients, learned, weights_of
from helpers.small import SmallEncoder, adapted_encoder, episode
from metasearch.algorithms.maml_align import MAMLAlign
from metasearch.config.recipe import Loss

MARGIN = 0.8
RATE = 0.6
EXACT = 1e-10
TRIPLETS = [episode(name, sizes=(4, 3, 2)) for name in "ab"]
PAIRS = [episode(name, "pairs", sizes=(4, 3, 2)) for name in "ab"]
VARIANTS = [
    {"student_inner_steps": 0},
    {"kd_weight": 0},
    {"kd_weight": 2, "task_reduction": "sum"},
    {"detach_teacher": True},
    {"detach_teacher": True, "kd_reduction": "mean", "student_inner_steps": 2},
]


@pytest.fixture(params=[SmallEncoder, adapted_encoder], ids=["small", "adapter"])
def encoder(request):
    return request.param()


def make(encoder, **options):
    return MAMLAlign(encoder, Loss(margin=MARGIN), MAMLAlign.Options(inner_lr=RATE, **options))


def expected_loss(learner, episodes, first_order):
    """Return (L, L_task, L_kd) of Algorithm 3, with the learner's options applied."""
    options, reference = learner.options, Reference(learner.encoder, MARGIN)
    start = weights_of(learner.encoder.embedder)
    columns = []
    for x, y, z in (e.sets for e in episodes):
        theta_t = reference.descend(start, [x] * options.inner_steps, RATE, first_order)
        theta_s = reference.descend(start, [y] * options.student_inner_steps, RATE, first_order)
        columns.append((reference.loss(theta_t, y), reference.loss(start, y), reference.loss(theta_s, z)))
    l_qy, l_sy, l_qz = (torch.stack(column) for column in zip(*columns, strict=True))

    task = (l_qy.sum() + l_qz.sum()) / (2 * len(episodes) if options.task_reduction == "mean" else 2)
    gap = (l_qy.detach() if options.detach_teacher else l_qy) - l_sy
    kd = {"sum": gap.sum(), "mean": gap.mean()}[options.kd_reduction] ** 2
    return task + options.kd_weight * kd, task, kd


# The paper's own form with any number of inner steps, every other form with two.
FORMS = [*(({}, steps) for steps in (1, 2, 5)), *((variant, 2) for variant in VARIANTS)]
CASES = [
    (TRIPLETS, {}, 2, True),
    *((TRIPLETS, variant, steps, bool(i % 2)) for i, (variant, steps) in enumerate(FORMS)),
    *((PAIRS, {}, 2, first_order) for first_order in (True, False)),
]


@pytest.mark.parametrize(("episodes", "variant", "steps", "first_order"), CASES)
def test_outer_loss_and_gradient_are_those_of_algorithm_3(encoder, episodes, variant, first_order, steps):
    learner = make(encoder, inner_steps=steps, first_order=first_order, **variant)
    weights = weights_of(encoder.embedder)
    total, task, kd = expected_loss(learner, episodes, first_order)
    other_order, _, _ = expected_loss(learner, episodes, not first_order)

    found, gradient = learned(learner, episodes)

    assert found == pytest.approx(total.item(), rel=EXACT)
    assert learner.outer_loss(episodes).terms == pytest.approx(
        {"task": task.item(), "kd": kd.item(), "kd_share": learner.options.kd_weight * kd.item() / task.item()},
        rel=EXACT,
    )
    assert_same(gradient, gradients(total, weights), EXACT)
    assert distance(gradient, gradients(other_order, weights)) > 1e-3
