"""A meta-transfer on functions that are small enough to write down: by autograd, by recomputing, and by hand."""

import math

import pytest
import torch

from metasearch.fast import descend, transfer

MODES = ["graph", "recompute"]
RATE = 0.3
EXACT = {"rtol": 1e-12, "atol": 1e-13}


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def start():
    """Return a matrix, a vector, one that only the inner loss uses, one only the last does, and one that none does."""
    return [drawn(3, 2, seed=1), drawn(2, seed=2), drawn(2, seed=3), drawn(2, seed=4), drawn(2, seed=5)]


def inner(number):
    """Return the loss of an inner step; each has data of its own."""
    x = drawn(4, 3, seed=10 + number)
    return lambda w: (torch.tanh(x @ w[0]) * w[1] + w[2].sin()).square().mean()


def last(w):
    return (torch.tanh(drawn(5, 3, seed=20) @ w[0]) * w[1].exp() - w[3]).square().mean()


def by_hand(steps, rates, create_graph):
    """Return the last loss and its gradients in weights and rates, by plain autograd through every step."""
    leaves = [weight.requires_grad_() for weight in start()]
    rates = [r.clone().requires_grad_() for r in rates]
    weights = leaves
    for number in range(steps):
        found = torch.autograd.grad(
            inner(number)(weights), weights, create_graph=create_graph, allow_unused=True, materialize_grads=True
        )
        weights = [w - r * g for w, r, g in zip(weights, rates, found, strict=True)]
    loss = last(weights)
    found = torch.autograd.grad(loss, [*leaves, *rates], allow_unused=True, materialize_grads=True)
    return loss.detach(), found[: len(leaves)], found[len(leaves) :]


def assert_same(found, expected):
    """Assert that gradients agree; None stands for zeros."""
    for mine, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.zeros_like(wanted) if mine is None else mine, wanted, **EXACT)


def rates_of(kind):
    return RATE if kind == "scalar" else [0.1 + weight.abs() for weight in start()]


@pytest.mark.parametrize("kind", ["scalar", "tensors"])
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("mode", ["first", *MODES])
def test_loss_and_gradients_are_those_of_plain_autograd(mode, steps, kind):
    rates = rates_of(kind)
    tensors = [torch.full_like(w, RATE) for w in start()] if kind == "scalar" else rates
    loss, gradient, of_rates = by_hand(steps, tensors, create_graph=mode != "first")
    found = transfer(start(), [inner(number) for number in range(steps)], last, rates, mode)
    torch.testing.assert_close(found.loss, loss, **EXACT)
    assert_same(found.gradient, gradient)
    assert not found.loss.requires_grad
    assert all(g is None or not g.requires_grad for g in found.gradient)
    if kind == "tensors" and steps:
        assert_same(found.rates, of_rates)
    else:
        assert not found.rates


def test_the_ways_differ_where_they_should():
    first, second = (transfer(start(), [inner(0)], last, RATE, mode).gradient[0] for mode in ("first", "graph"))
    assert (first - second).norm() > 1e-3 * second.norm()


@pytest.mark.parametrize("mode", ["first", *MODES])
def test_one_step_on_a_line_worked_out(mode):
    """L_0(w) = (2w − 3)² and L(w) = sin w, from w = 0.5 at a rate of 0.1.

    w′ = 0.5 − 0.1 · 4 (2 · 0.5 − 3) = 1.3. First order is cos w′; second order has the factor 1 − 0.1 · 8 = 0.2.
    """
    w = torch.tensor(0.5, dtype=torch.float64)
    found = transfer([w], [lambda w: (2 * w[0] - 3) ** 2], lambda w: w[0].sin(), 0.1, mode, keep_inner=True)
    assert found.loss.item() == pytest.approx(math.sin(1.3))
    assert found.gradient[0].item() == pytest.approx(math.cos(1.3) * (1 if mode == "first" else 0.2))
    assert found.inner.loss.item() == pytest.approx((2 * 0.5 - 3) ** 2)
    assert found.inner.gradient[0].item() == pytest.approx(4 * (2 * 0.5 - 3))


@pytest.mark.parametrize("mode", ["first", *MODES])
def test_the_first_inner_step_is_given_too(mode):
    weights = [weight.requires_grad_() for weight in start()]
    loss = inner(0)(weights)
    expected = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
    found = transfer(start(), [inner(0), inner(1)], last, RATE, mode, keep_inner=True).inner
    torch.testing.assert_close(found.loss, loss.detach(), **EXACT)
    assert_same(found.gradient, expected)
    assert transfer(start(), [], last, RATE, mode, keep_inner=True).inner is None


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("mode", ["first", *MODES])
def test_a_weight_that_nothing_uses_has_no_gradient(mode, steps):
    found = transfer(start(), [inner(0)] * steps, last, rates_of("tensors"), mode)
    assert found.gradient[4] is None
    assert found.gradient[3] is not None
    if steps:
        assert found.rates[4] is None


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("mode", ["first", *MODES])
def test_weights_and_rates_stay_as_they_are(mode, steps):
    weights, rates = start(), rates_of("tensors")
    transfer(weights, [inner(0)] * steps, last, rates, mode)
    assert all(torch.equal(weight, same) for weight, same in zip(weights, start(), strict=True))
    assert all(torch.equal(rate, same) for rate, same in zip(rates, rates_of("tensors"), strict=True))
    assert not any(tensor.requires_grad or tensor.grad is not None for tensor in (*weights, *rates))


@pytest.mark.parametrize("mode", ["first", *MODES])
def test_a_linear_inner_loss_has_no_second_derivative(mode):
    """w′ = w − 0.1 · (1, 1), whatever w is: all three gradients of w′² are 2 w′."""
    w = torch.tensor([1.0, 2.0], dtype=torch.float64)
    found = transfer([w], [lambda w: w[0].sum()], lambda w: w[0].square().sum(), 0.1, mode)
    assert found.gradient[0].tolist() == pytest.approx([2 * 0.9, 2 * 1.9])


def test_descent_is_the_steps_and_the_loss_before_each():
    """L(w) = w² at a rate of 0.25 halves w: 8, 4, 2, 1."""
    w = torch.tensor([8.0])
    moved, losses = descend([w], [lambda w: w[0].square().sum()] * 3, 0.25)
    assert moved[0].tolist() == [1]
    assert [loss.item() for loss in losses] == [64, 16, 4]
    assert w.tolist() == [8]


@pytest.mark.parametrize(("mode", "grows"), [("first", False), ("recompute", False), ("graph", True)])
def test_what_is_kept_for_the_way_back_grows_with_the_steps_in_graph_form_only(mode, grows):
    """Counted are the bytes that autograd holds at the same time, without the θ_t that `recompute` starts from."""

    def most(steps):
        held, peak = {}, [0]

        class Kept:
            def __init__(self, tensor):
                self.tensor = tensor
                storage = tensor.untyped_storage()
                held.setdefault(storage.data_ptr(), [storage.nbytes(), 0])[1] += 1
                peak[0] = max(peak[0], sum(size for size, _ in held.values()))

            def __del__(self):
                place = held[self.tensor.untyped_storage().data_ptr()]
                place[1] -= 1
                if not place[1]:
                    del held[self.tensor.untyped_storage().data_ptr()]

        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            transfer(start(), [inner(0)] * steps, last, RATE, mode)
        assert not held
        return peak[0]

    if grows:
        assert most(5) > 2.5 * most(1)
    else:
        assert most(5) == most(1)
