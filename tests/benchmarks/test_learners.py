"""The learners that benchmarks register: other distillation terms of MAML-Align and other inner rates, by hand."""

from dataclasses import replace

import pytest
import torch
from torch.func import functional_call

from benchmarks.learners.maml_align_terms import MAMLAlignTerms
from benchmarks.learners.maml_fall import MAMLFall
from helpers.reference import Reference, assert_same, distance, gradients, learned, weights_of
from helpers.small import SmallEncoder, adapted_encoder, episode
from metasearch.algorithms.maml_align import MAMLAlign
from metasearch.config.recipe import Loss

MARGIN = 0.8
RATE = 0.6
EXACT = 1e-10
TRIPLETS = [episode(name, sizes=(4, 3, 2)) for name in "ab"]


@pytest.fixture(params=[SmallEncoder, adapted_encoder], ids=["small", "adapter"])
def encoder(request):
    return request.param()


def make(encoder, kind=MAMLAlignTerms, **options):
    return kind(encoder, Loss(margin=MARGIN), kind.Options(inner_lr=RATE, **options))


def test_the_papers_term_is_that_of_maml_align(encoder):
    ours, theirs = (learned(make(encoder, kind, inner_steps=2), TRIPLETS) for kind in (MAMLAlignTerms, MAMLAlign))
    assert ours[0] == pytest.approx(theirs[0], rel=EXACT)
    assert_same(ours[1], theirs[1], EXACT)


def vectors(encoder, weights, examples):
    """Return the distinct questions and candidates of a set, or its first and second texts, as vectors by hand."""
    first, *others = (
        [t[i] for t in (e.texts for e in examples.examples)] for i in range(len(examples.examples[0].texts))
    )
    roles = ("question", "candidate") if others[1:] else ("text", "text")
    columns = (first, [text for column in others for text in column])
    return [
        functional_call(encoder.embedder, weights, (encoder.features(list(dict.fromkeys(column)), role),))
        for column, role in zip(columns, roles, strict=True)
    ]


def scores(encoder, teacher, student, y):
    """KL(p_T ‖ p_θ) by its definition: Σ_c p_T (log p_T − log p_θ), mean over questions; τ = 0.2."""
    (q_t, c_t), (q_s, c_s) = vectors(encoder, teacher, y), vectors(encoder, student, y)
    p_t = torch.exp(q_t @ c_t.T / 0.2).detach()
    p_s = torch.exp(q_s @ c_s.T / 0.2)
    p_t, p_s = p_t / p_t.sum(1, keepdim=True), p_s / p_s.sum(1, keepdim=True)
    return (p_t * (p_t.log() - p_s.log())).sum() / len(q_t)


def embeddings(encoder, teacher, student, y):
    """1 − cos(t_T, t_θ), mean over the texts."""
    pairs = zip(vectors(encoder, teacher, y), vectors(encoder, student, y), strict=True)
    apart = [1 - t.detach() @ s for ts, ss in pairs for t, s in zip(ts, ss, strict=True)]
    return sum(apart) / len(apart)


@pytest.mark.parametrize(("first_order", "steps"), [(True, 2), (False, 0)], ids=["first order", "second order"])
@pytest.mark.parametrize(
    ("distil", "term", "options"),
    [("scores", scores, {"kd_temperature": 0.2}), ("embeddings", embeddings, {})],
    ids=["scores", "embeddings"],
)
def test_distilling_scores_or_embeddings(encoder, distil, term, options, first_order, steps):
    """L = (Σ L_Y(θ_T) + Σ L_Z(θ_S)) / 2B + λ · mean_j L_kd,j, the teacher's side of which is a constant."""
    how = {"inner_steps": 2, "student_inner_steps": steps, "first_order": first_order, "kd_weight": 3}
    learner = make(encoder, distil=distil, **how, **options)
    reference, start = Reference(encoder, MARGIN), weights_of(encoder.embedder)
    task, kd = [], []
    for x, y, z in (e.sets for e in TRIPLETS):
        theta_t = reference.descend(start, [x, x], RATE, first_order)
        theta_s = reference.descend(start, [y] * steps, RATE, first_order)
        task += [reference.loss(theta_t, y), reference.loss(theta_s, z)]
        kd.append(term(encoder, theta_t, start, y))
    total = sum(task) / 4 + 3 * sum(kd) / 2

    found, gradient = learned(learner, TRIPLETS)

    assert found == pytest.approx(total.item(), rel=EXACT)
    assert_same(gradient, gradients(total, start), EXACT)
    assert distance(gradients(total, start), gradients(sum(task) / 4, start)) > 1e-2


def test_translations_of_questions_are_no_candidates_of_distilled_scores(encoder):
    def translated(examples):
        said = (replace(t.question, language="hi", text=f"{t.question.text} in Hindi") for t in examples.examples)
        triplets = zip(examples.examples, said, strict=True)
        return replace(examples, examples=tuple(replace(t, translation=question) for t, question in triplets))

    learner = make(encoder, inner_steps=1, distil="scores")
    asked = [replace(e, sets=tuple(map(translated, e.sets))) for e in TRIPLETS]
    found, expected = (learner.outer_loss(episodes).terms for episodes in (asked, TRIPLETS))
    assert found == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
@pytest.mark.parametrize("learner", [MAMLFall, MAMLAlignTerms])
def test_an_inner_fall_sets_the_rate_of_each_step(encoder, learner, first_order):
    """rate = f · L / ‖g‖²: the step −rate · g lowers L + g · step by f · L. It counts as a constant."""
    reference, start, fall = Reference(encoder, MARGIN), weights_of(encoder.embedder), 0.3

    def descend(examples):
        loss = reference.loss(start, examples)
        squares = sum(g.square().sum() for g in gradients(loss, start).values())
        return reference.descend(start, [examples], (fall * loss / squares).item(), first_order)

    terms = []
    for x, y, z in (e.sets for e in TRIPLETS):
        l_y, l_z = reference.loss(descend(x), y), reference.loss(descend(y), z)
        terms.append((l_y + l_z) / 2)
    total = sum(terms) / 2
    more = {"kd_weight": 0} if learner is MAMLAlignTerms else {}
    options = learner.Options(inner_fall=fall, inner_steps=1, first_order=first_order, **more)
    made = learner(encoder, Loss(margin=MARGIN), options)

    found, gradient = learned(made, TRIPLETS)

    assert found == pytest.approx(total.item(), rel=EXACT)
    assert_same(gradient, gradients(total, start), EXACT)


def test_kd_share_weighs_the_term_by_the_sums_so_far_and_goes_on_after_a_stop(encoder):
    """λ = share · Σ L_task / Σ L_kd over steps 1 to t; L_task = (teacher + final) / 2, L_kd = (teacher − student)²."""
    steps = [(1.2, 1.0, 1.0), (2.0, 1.5, 1.0), (0.9, 1.0, 0.5)]
    expected, sums = [], (0.0, 0.0)
    for teacher, student, final in steps:
        task, kd = (teacher + final) / 2, (teacher - student) ** 2
        sums = sums[0] + task, sums[1] + kd
        expected.append(task + 0.3 * sums[0] / sums[1] * kd)

    def values(step):
        names = ("teacher", "student", "final")
        return {name: torch.tensor([value], dtype=torch.float64) for name, value in zip(names, step, strict=True)}

    whole, found = make(encoder, kd_share=0.3), []
    for number, step in enumerate(steps):
        if number == 2:  # stopped and resumed
            state, whole = whole.state(), make(encoder, kd_share=0.3)
            whole.load_state(state)
        whole.combine(values(steps[0]), TRIPLETS[:1])  # to look at a batch is no step
        found.append(whole.combine(values(step), TRIPLETS[:1]).total.item())
        whole.after_step()

    assert found == pytest.approx(expected, rel=EXACT)


def test_a_divergence_below_0_by_rounding_has_no_weight(encoder):
    values = {"teacher": 0.6, "kd": -1e-9, "final": 0.4}
    learner = make(encoder, distil="scores", kd_share=0.3)
    loss = learner.combine({name: torch.tensor([value], dtype=torch.float64) for name, value in values.items()}, "e")
    # (teacher + final) / 2; a share of 0.3 would be λ = 0.3 · 0.5 / −1e-9, which leads away from the teacher.
    assert loss.total.item() == pytest.approx(0.5, rel=EXACT)
    assert loss.terms["kd_share"] == 0
