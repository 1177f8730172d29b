"""The inner loop on learn2learn: what `FastModel` shares with it, and what it does where `MAML.adapt` cannot."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from helpers.small import UNUSED, SmallEncoder
from metasearch.learners.inner_loop import FastModel

ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
WITHOUT = """
import sys
asked = []
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {packages}:
            asked.append(name)
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
try:
    import {module}
    print("imported", *asked)
except ImportError:
    print("failed", *asked)
"""


class Line(nn.Module):
    """f(x) = w x."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float64))

    def forward(self, x):
        return self.weight * x


def import_without(module, packages):
    """Import a module in a fresh interpreter that lacks some packages; return the outcome and those it looked for."""
    code = WITHOUT.format(module=module, packages=packages)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def smooth_net():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def inputs(seed):
    return torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def small_loss(forward, features):
    return forward(features)[:, 0].square().mean()


@pytest.mark.slow
def test_importing_the_inner_loop_looks_for_none_of_the_packages_that_learn2learn_loads():
    """`import learn2learn` alone stops at the first of them."""
    heavy = ["gym", "torchvision", "torchtext", "requests"]

    found, *asked = import_without("metasearch.learners.inner_loop", [*heavy, "qpth"])
    assert found == "imported"  # without qpth, too
    assert not {*asked} & {*heavy}
    assert import_without("learn2learn", heavy)[0] == "failed"


@ORDERS
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_equals_maml_of_learn2learn_where_that_works(first_order, steps):
    from learn2learn.algorithms.maml import MAML

    def outer_gradient(net, fast, adapt):
        for _ in range(steps):
            adapt(fast(inputs(1)).square().mean())
        loss = fast(inputs(2)).cos().mean()
        return loss, torch.autograd.grad(loss, list(net.parameters()))

    net = smooth_net()
    theirs = MAML(net, lr=0.3, first_order=first_order).clone()
    expected_loss, expected = outer_gradient(net, theirs, theirs.adapt)
    ours = FastModel(net, first_order)
    loss, found = outer_gradient(net, ours, lambda inner: ours.adapt(inner, 0.3))

    assert torch.equal(loss, expected_loss)
    assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))


@ORDERS
def test_one_step_on_a_line_by_hand(first_order):
    """L(w) = (w x − y)², w′ = w − α 2x (w x − y), and dL(w′)/dw = 2x (w′ x − y) · dw′/dw, dw′/dw = 1 − 2 α x²."""
    w, x, y, alpha = 0.5, 2.0, 3.0, 0.1
    moved = w - alpha * 2 * x * (w * x - y)
    line = Line(w)
    fast = FastModel(line, first_order)

    fast.adapt((fast(x) - y) ** 2, alpha)
    ((fast(x) - y) ** 2).backward()

    assert [weight.item() for weight in fast.parameters()] == pytest.approx([moved])
    inner = 1 if first_order else 1 - 2 * alpha * x**2
    assert line.weight.grad.item() == pytest.approx(2 * x * (moved * x - y) * inner)


@ORDERS
def test_each_weight_has_a_rate_of_its_own_and_the_rates_can_be_learned(first_order):
    """w′ = w − ρ ∘ g, so dL(w′)/dρ = −g ∘ ∇L(w′), in first order as in second."""
    net = smooth_net()
    weights = list(net.parameters())
    rates = [torch.rand_like(weight).requires_grad_() for weight in weights]
    gradients = torch.autograd.grad(net(inputs(1)).square().mean(), weights)
    fast = FastModel(net, first_order)

    fast.adapt(fast(inputs(1)).square().mean(), rates)

    moved = fast.parameters()
    for new, weight, rate, gradient in zip(moved, weights, rates, gradients, strict=True):
        torch.testing.assert_close(new, weight - rate * gradient, rtol=1e-12, atol=0)
    query = fast(inputs(2)).cos().mean()
    at_moved = torch.autograd.grad(query, moved, retain_graph=True)
    for found, gradient, pull in zip(torch.autograd.grad(query, rates), gradients, at_moved, strict=True):
        torch.testing.assert_close(found, -gradient * pull, rtol=1e-10, atol=1e-14)


def test_a_missing_rate_is_an_error():
    net = smooth_net()
    fast = FastModel(net, first_order=True)

    with pytest.raises(ValueError, match="zip"):
        fast.adapt(fast(inputs(1)).mean(), [torch.ones_like(weight) for weight in net.parameters()][:-1])


def test_in_first_order_the_inner_loss_can_be_differentiated_again_only_when_kept():
    net = smooth_net()
    expected = torch.autograd.grad(net(inputs(1)).square().mean(), list(net.parameters()))

    def inner_loss_after_a_step(**keep):
        fast = FastModel(net, first_order=True)
        loss = fast(inputs(1)).square().mean()
        fast.adapt(loss, 0.3, **keep)
        return loss

    found = torch.autograd.grad(inner_loss_after_a_step(retain_graph=True), list(net.parameters()))
    assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        inner_loss_after_a_step().backward()


@ORDERS
def test_inner_steps_leave_the_module_and_what_the_loss_does_not_reach_alone(first_order):
    encoder = SmallEncoder()
    net, features = encoder.embedder, encoder.features(["a", "b", "c"], "text")
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    fast = FastModel(net, first_order)

    for _ in range(3):
        fast.adapt(small_loss(fast, features), 0.5)

    assert all(torch.equal(weight, before[name]) for name, weight in net.named_parameters())
    moved = dict(zip(before, fast.parameters(), strict=True))
    assert {name for name in before if torch.equal(moved[name], before[name])} == {"scale", *UNUSED}


@ORDERS
def test_tied_weights_stay_tied_through_inner_steps(first_order):
    """The moved weights, put into a network that ties them, give what the fast model gives."""
    encoder, tied = SmallEncoder(), SmallEncoder(seed=1).embedder
    net, features = encoder.embedder, encoder.features(["a", "b", "c"], "text")
    fast = FastModel(net, first_order)

    for _ in range(3):
        fast.adapt(small_loss(fast, features), 0.5)
    moved = dict(zip(dict(net.named_parameters()), fast.parameters(), strict=True))
    tied.load_state_dict(moved, strict=False)

    assert "second.weight" not in moved
    assert torch.equal(tied(features), fast(features))
    assert not torch.equal(tied(features), net(features))
