"""MAML-Align's losses and whole outer gradients, against Algorithm 3 written out by hand.

With B episodes (X, Y, Z), θ_T,j after n inner steps on X and θ_S,j after n′ on Y:

    L_task = (Σ_j L_Y(θ_T,j) + Σ_j L_Z(θ_S,j)) / 2B
    L_kd   = (Σ_j L_Y(θ_T,j) − Σ_j L_Y(θ))²
    L      = L_task + λ L_kd
"""

import pytest
import torch

from helpers.reference import Reference, assert_same, distance, gradients, learned, weights_of
from helpers.small import UNUSED, SmallEncoder, episode
from metasearch.algorithms.maml_align import WATCHED_STEPS, MAMLAlign
from metasearch.config.recipe import Loss

MARGIN = 0.8
RATE = 0.6
EXACT = 1e-10
TRIPLETS = [episode(name, sizes=(4, 3, 2)) for name in "ab"]
PAIRS = [episode(name, "pairs", sizes=(4, 3, 2)) for name in "ab"]
VARIANTS = [
    {},
    {"student_inner_steps": 0},
    {"student_inner_steps": 2},
    {"kd_weight": 0},
    {"kd_weight": 2},
    {"kd_reduction": "mean"},
    {"task_reduction": "sum"},
    {"detach_teacher": True},
    {"detach_teacher": True, "kd_reduction": "mean", "student_inner_steps": 2},
]


@pytest.fixture
def encoder():
    return SmallEncoder()


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


def named(variant):
    """Return what a variant is called in reports."""
    return ", ".join(f"{key}={value}" for key, value in variant.items()) or "paper"


# The paper's own form with any number of inner steps, every other form with two.
FORMS = [*(({}, steps) for steps in (1, 2, 5)), *((variant, 2) for variant in VARIANTS[1:])]


@pytest.mark.parametrize(("variant", "steps"), FORMS, ids=[f"{named(variant)}-{steps}" for variant, steps in FORMS])
@pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
def test_outer_loss_and_gradient_are_those_of_algorithm_3(encoder, variant, first_order, steps):
    learner = make(encoder, inner_steps=steps, first_order=first_order, **variant)
    weights = weights_of(encoder.embedder)
    total, task, kd = expected_loss(learner, TRIPLETS, first_order)
    other_order, _, _ = expected_loss(learner, TRIPLETS, not first_order)

    found, gradient = learned(learner, TRIPLETS)

    assert found == pytest.approx(total.item(), rel=EXACT)
    assert learner.outer_loss(TRIPLETS).terms == pytest.approx(
        {"task": task.item(), "kd": kd.item(), "kd_share": learner.options.kd_weight * kd.item() / task.item()},
        rel=EXACT,
    )
    assert_same(gradient, gradients(total, weights), EXACT)
    assert distance(gradient, gradients(other_order, weights)) > 1e-3


@pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
def test_outer_gradient_on_scored_pairs(encoder, first_order):
    learner = make(encoder, inner_steps=2, first_order=first_order)
    total, _, _ = expected_loss(learner, PAIRS, first_order)

    found, gradient = learned(learner, PAIRS)

    assert found == pytest.approx(total.item(), rel=EXACT)
    assert_same(gradient, gradients(total, weights_of(encoder.embedder)), EXACT)


def test_a_frozen_weight_is_not_learned_and_an_unused_one_gets_no_pull(encoder):
    _, gradient = learned(make(encoder, student_inner_steps=2), TRIPLETS)

    assert "scale" not in gradient
    assert all(gradient[name].count_nonzero() == 0 for name in UNUSED)


@pytest.mark.parametrize(
    ("kd_weight", "teacher", "warned"),
    [
        (0.5, 1.1, True),  # λ L_kd / L_task = 0.5 · 0.1² / 1.05 < 1 %
        (0.5, 2.0, False),  # 0.5 · 1² / 1.5
        (0.0, 1.1, False),  # nobody asked for the term
    ],
)
def test_a_distillation_term_that_is_too_small_to_teach_is_reported_once(encoder, caplog, kd_weight, teacher, warned):
    learner = make(encoder, kd_weight=kd_weight)
    values = {name: torch.tensor([value]) for name, value in (("teacher", teacher), ("student", 1.0), ("final", 1.0))}
    for _ in range(2 * WATCHED_STEPS):
        learner.combine(values, TRIPLETS[:1])
        learner.after_step()
    said = [record.getMessage() for record in caplog.records if "distillation term" in record.getMessage()]
    assert len(said) == warned
    assert all("options.kd_weight (0.5)" in line for line in said)


@pytest.mark.parametrize("variant", VARIANTS[1:], ids=named)
def test_each_option_changes_the_outer_gradient(encoder, variant):
    _, paper = learned(make(encoder, inner_steps=2), TRIPLETS)
    _, other = learned(make(encoder, inner_steps=2, **variant), TRIPLETS)

    assert distance({name: other[name] for name in paper}, paper) > 1e-3


@pytest.mark.parametrize("student_steps", [0, 1, 2])
def test_first_order_gradient_is_a_sum_of_three_plain_gradients(encoder, student_steps):
    """∇ = (g_QY + g_QZ) / 2B + 2 λ Δ (g_QY − g_SY), Δ = Σ_j L_QY − Σ_j L_SY.

    Each g is summed over episodes and taken where its loss is: g_QY at θ_T,j, g_SY at θ, g_QZ at θ_S,j.
    """
    reference, start, kd_weight = Reference(encoder, MARGIN), weights_of(encoder.embedder), 0.7

    def at(weights, examples):
        leaves = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        loss = reference.loss(leaves, examples)
        return loss.item(), gradients(loss, leaves)

    losses, g = {"QY": 0.0, "SY": 0.0, "QZ": 0.0}, {}
    for x, y, z in (e.sets for e in TRIPLETS):
        theta_t = reference.descend(start, [x] * 5, RATE, first_order=True)
        theta_s = reference.descend(start, [y] * student_steps, RATE, first_order=True)
        for key, (loss, gradient) in {"QY": at(theta_t, y), "SY": at(start, y), "QZ": at(theta_s, z)}.items():
            losses[key] += loss
            g[key] = {name: g[key][name] + gradient[name] for name in start} if key in g else gradient
    delta = losses["QY"] - losses["SY"]
    expected = {
        n: (g["QY"][n] + g["QZ"][n]) / (2 * len(TRIPLETS)) + 2 * kd_weight * delta * (g["QY"][n] - g["SY"][n])
        for n in start
    }

    _, gradient = learned(
        make(encoder, inner_steps=5, student_inner_steps=student_steps, kd_weight=kd_weight), TRIPLETS
    )

    assert_same(gradient, expected, EXACT)
