"""One contract of outer gradients and their reference: every learner has the same gradient by both, on every family of
encoders.

In float64 to 1e-10, of all parameters together and of each; in float32 to 1e-5, of all together. The engine knows
families but no learners: one learner runs on every family, and every other learner on one of them, in turn. Other
numbers of inner steps, and float32, run with one learner.
"""

import pytest
import torch

from helpers.gradients import FAMILIES, PLAIN, REPTILE, STEPPING, encoder_of, error, errors, on_both, outer
from helpers.padded import padded
from metasearch.config import registry
from metasearch.errors import EncoderError
from metasearch.training.outer_gradients import OuterGradients

EXACT = {torch.float64: 1e-10, torch.float32: 1e-5}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

STEPS = [(2, torch.float64), (1, torch.float64), (5, torch.float32)]
ON_EVERY_DEVICE = pytest.mark.parametrize("device", DEVICES)


def rotate_families(cases, ways, families=FAMILIES):
    """Return the first way for one case on each family and for the others on one, and each other way for one case."""
    places = [(cases[0], family, ways[0]) for family in families]
    places += [(case, FAMILIES[(i + 1) % len(FAMILIES)], ways[0]) for i, case in enumerate(cases[1:])]
    places += [(cases[0], FAMILIES[i], way) for i, way in enumerate(ways[1:])]
    return [pytest.param(*place, id=f"{place[0]}-{place[1]}-{place[2]}") for place in places]


STEPPED, SECOND = [*STEPPING, REPTILE], STEPPING
LAYOUTS = ("mpnet", "modernbert", "student", "neutral", "adapter")
"""Families that differ in how they are packed, sliced or called."""
LACKING = {"adapter": ("pooled", "embedding", "states")}
"""Outputs that a family does not have."""


def assert_same(found, plain, dtype):
    """Assert that losses, terms and gradients agree, and that the same parameters have one."""
    exact = EXACT[dtype]
    assert found.loss.item() == pytest.approx(plain.loss.item(), rel=exact)
    assert found.terms == pytest.approx(plain.terms, rel=exact, abs=exact)
    assert not found.loss.requires_grad
    assert error(found, plain) < exact
    if dtype == torch.float64:
        assert max(errors(found, plain).values()) < exact


@pytest.mark.slow
@ON_EVERY_DEVICE
@pytest.mark.parametrize(("case", "family", "way"), rotate_families(STEPPED, STEPS))
def test_first_order(case, family, way, device):
    steps, dtype = way
    learner = case.learn(encoder_of(family, dtype, device=device), inner_steps=steps)
    plain, found = on_both(learner, case.episodes(2 if steps == 1 else 1))
    assert_same(found, plain, dtype)


@pytest.mark.slow
@ON_EVERY_DEVICE
@pytest.mark.parametrize(("case", "family", "way"), rotate_families(SECOND, STEPS, LAYOUTS))
def test_second_order(case, family, way, device):
    steps, dtype = way
    learner = case.learn(encoder_of(family, dtype, device=device), inner_steps=steps, first_order=False)
    plain, found = on_both(learner, case.episodes(1))
    assert_same(found, plain, dtype)


@pytest.mark.slow
@ON_EVERY_DEVICE
@pytest.mark.parametrize(("case", "family", "dtype"), rotate_families(PLAIN, list(EXACT)))
def test_without_inner_steps(case, family, dtype, device):
    learner = case.learn(encoder_of(family, dtype, device=device))
    if dict(case.options).get("output") in LACKING.get(family, ()):
        for gradients in (padded, OuterGradients(learner.encoder)):
            with pytest.raises(EncoderError, match="only output is sentence"):
                outer(learner, case.episodes(), gradients)
        return
    plain, found = on_both(learner, case.episodes())
    assert_same(found, plain, dtype)


def test_another_number_of_steps_or_another_order_is_another_gradient():
    """So the contract tells them apart."""
    case = STEPPING[0]

    def gradient(steps, first_order):
        learner = case.learn(encoder_of("student"), inner_steps=steps, first_order=first_order)
        return outer(learner, case.episodes(1), OuterGradients(learner.encoder))

    first = gradient(1, True)
    assert error(gradient(3, True), first) > 1e-2
    assert error(gradient(1, False), first) > 1e-2


@ON_EVERY_DEVICE
@pytest.mark.parametrize("family", LAYOUTS)
def test_without_inner_steps_all_texts_of_a_meta_batch_in_one_pass(family, device):
    """As on a GPU; texts stand in several sets and episodes."""
    case = PLAIN[0]
    learner = case.learn(encoder_of(family, device=device))
    gradients = OuterGradients(learner.encoder)
    assert (gradients.together == 1) == (device == "cpu")
    for gradients.together in (8, 2, 1):
        assert_same(outer(learner, case.episodes(3), gradients), outer(learner, case.episodes(3)), torch.float64)


def test_every_learner_is_here():
    assert {case.learner for case in (*STEPPING, REPTILE, *PLAIN)} == set(registry.names("learners"))


@pytest.mark.parametrize("case", [STEPPING[0], STEPPING[2]], ids=str)
def test_on_several_workers(case):
    """Four episodes on two threads, in second order."""
    learner = case.learn(encoder_of("bert"), inner_steps=1, first_order=False)
    plain, found = on_both(learner, case.episodes(4), workers=2)
    assert_same(found, plain, torch.float64)
