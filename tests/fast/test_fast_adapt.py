"""Fast gradients with inner loops that move a part of the weights: those of the reference, with less work."""

import pytest
import torch

from helpers.gradients import FAMILIES, OVERLAPPING, REPTILE, STEPPING, encoder_of, error, errors, on_both, outer
from metasearch.fast import FastGradients, descend, transfer
from metasearch.fast.memory import graph_size
from metasearch.learners.gradients import ReferenceGradients

PARTS = ["last:1", "bias", "lora:2"]
EXACT = 1e-10
OTHERS = [family for family in FAMILIES if family not in ("bert", "static")]
QUICK = [("last:1", "student"), ("lora:2", "mpnet")]
ON_FAMILIES = [
    pytest.param(adapt, family, marks=() if (adapt, family) in QUICK else pytest.mark.slow)
    for adapt in PARTS
    for family in OTHERS
    if (adapt, family) != ("bias", "modernbert")  # which has no bias vectors
]


def assert_same(fast, plain):
    """Assert that losses and gradients agree, and that the same parameters have one."""
    assert fast.loss.item() == pytest.approx(plain.loss.item(), rel=EXACT)
    assert fast.terms == pytest.approx(plain.terms, rel=EXACT, abs=EXACT)
    assert error(fast, plain) < EXACT
    assert max(errors(fast, plain).values()) < EXACT


@pytest.mark.parametrize("adapt", PARTS)
@pytest.mark.parametrize("case", [*STEPPING, REPTILE], ids=str)
def test_first_order(case, adapt):
    learner = case.learn(encoder_of("bert", layers=2), adapt=adapt, inner_steps=2, student_inner_steps=2)
    plain, fast = on_both(learner, case.episodes(2), workers=2)
    assert_same(fast, plain)


@pytest.mark.slow
@pytest.mark.parametrize("adapt", PARTS)
@pytest.mark.parametrize("case", STEPPING, ids=str)
def test_second_order_by_graph_and_by_recompute(case, adapt):
    learner = case.learn(encoder_of("bert", layers=2), adapt=adapt, inner_steps=2, first_order=False)
    episodes = case.episodes(1)
    plain, graph = on_both(learner, episodes, second_order="graph")
    assert_same(graph, plain)
    assert_same(outer(learner, episodes, FastGradients(learner.encoder, "recompute")), plain)


@pytest.mark.parametrize(("adapt", "family"), ON_FAMILIES)
def test_every_family(adapt, family):
    learner = STEPPING[0].learn(encoder_of(family, layers=2), adapt=adapt, inner_steps=2, first_order=False)
    plain, fast = on_both(learner, STEPPING[0].episodes(1))
    assert_same(fast, plain)


@pytest.mark.slow
@pytest.mark.parametrize("adapt", PARTS)
@pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
def test_with_layers_that_are_computed_again(adapt, first_order):
    case = STEPPING[2]
    learner = case.learn(encoder_of("bert", layers=2), adapt=adapt, inner_steps=2, first_order=first_order)
    episodes = case.episodes(1)
    plain = outer(learner, episodes)
    for again in ReferenceGradients("on"), FastGradients(learner.encoder, checkpointing="on"):
        assert_same(outer(learner, episodes, again), plain)


@pytest.mark.parametrize("case", [STEPPING[0], REPTILE], ids=str)
def test_each_part_is_another_gradient(case):
    """So the contract tells them apart."""
    encoder, episodes = encoder_of("bert", layers=2), case.episodes(1)
    every = [FastGradients(encoder)] * 4
    found = [
        outer(case.learn(encoder, adapt=adapt, inner_steps=2), episodes, engine).dense
        for adapt, engine in zip(["all", *PARTS], every, strict=True)
    ]
    for i, one in enumerate(found):
        for other in found[:i]:
            assert one.keys() != other.keys() or any((one[n] - other[n]).norm() > 1e-3 * one[n].norm() for n in one)


def test_static_encoders_adapt_whole():
    learner = OVERLAPPING.learn(encoder_of("static"), adapt="all", inner_steps=2)
    plain, fast = on_both(learner, OVERLAPPING.episodes(1))
    assert_same(fast, plain)


@pytest.mark.parametrize("rates", [[None, 0.3], [None, torch.tensor([0.1, 0.4], dtype=torch.float64)]])
@pytest.mark.parametrize("mode", ["first", "graph", "recompute"])
def test_a_weight_without_a_rate_is_one_with_a_rate_of_zero(mode, rates):
    def drawn(seed):
        return torch.randn(2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

    def loss(w):
        return ((w[0] * w[1]).sin() + w[1] * w[0].square()).square().sum()

    start, zero = [drawn(1), drawn(2)], torch.zeros(2, dtype=torch.float64)
    found = transfer(start, [loss] * 3, loss, rates, mode, keep_inner=True)
    tensors = [zero, torch.as_tensor(rates[1], dtype=torch.float64).expand(2)]
    expected = transfer(start, [loss] * 3, loss, tensors, mode, keep_inner=True)
    for mine, wanted in (*zip(found.gradient, expected.gradient, strict=True), (found.loss, expected.loss)):
        torch.testing.assert_close(mine, wanted, rtol=1e-12, atol=1e-14)
    # The first inner step is asked for with the gradient in all weights, as MAML-Align needs it.
    for mine, wanted in zip(found.inner.gradient, expected.inner.gradient, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-12, atol=1e-14)
    if isinstance(rates[1], float):
        assert found.rates is None
    else:
        assert found.rates[0] is None
        torch.testing.assert_close(found.rates[1], expected.rates[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("mode", "again"), [("first", []), ("recompute", [[True, True]] * 2)])
def test_inner_steps_ask_for_no_gradient_of_a_weight_that_stays(mode, again):
    """Two inner steps, the last loss, and for Hessians the steps again, of which all weights are a part."""
    asked = []

    def loss(w):
        asked.append([weight.requires_grad for weight in w])
        return (w[0] * w[1]).square().sum()

    start = [torch.ones(2), torch.ones(2)]
    transfer(start, [loss] * 2, loss, [None, 0.1], mode)
    assert asked == [[False, True]] * 2 + [[True, True]] + again
    asked.clear()
    descend(start, [loss] * 2, [None, 0.1])
    assert asked == [[False, True]] * 2


def test_a_weight_that_stays_is_not_copied():
    start = [torch.ones(3), torch.ones(3)]
    moved, _ = descend(start, [lambda w: (w[0] * w[1]).square().sum()], [None, 0.1])
    assert moved[0].data_ptr() == start[0].data_ptr()
    assert moved[1].data_ptr() != start[1].data_ptr()


def test_an_inner_loss_that_reaches_nothing_that_moves_moves_nothing():
    start = [torch.ones(2), torch.ones(2)]
    found = transfer(start, [lambda w: w[0].square().sum()], lambda w: (w[0] * w[1]).sum(), [None, 0.1])
    assert [one.tolist() for one in found.gradient] == [[1, 1], [1, 1]]


def test_the_graph_of_a_step_is_smaller_where_less_moves():
    """Of w_1 (w_0)³ the second derivatives in w_1 alone need no chain of w_0."""

    def loss(w):
        return (w[1] * w[0].tanh().tanh().tanh()).square().sum()

    start = [torch.ones(1000, dtype=torch.float64), torch.ones(1000, dtype=torch.float64)]
    assert graph_size(loss, start, [None, 0.1]) < graph_size(loss, start)
