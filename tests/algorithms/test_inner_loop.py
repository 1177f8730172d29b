"""The inner loop on learn2learn: what a model shares with it, the stand-in, and which of the two serves."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from helpers.small import UNUSED, SmallEncoder
from metasearch.algorithms import inner_loop
from metasearch.algorithms.inner_loop import Model

ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
WITHOUT = """
import logging, sys
asked = []
class Lacking:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        if name in {packages}:
            asked.append(name)
            return None
        return self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[-1] = Lacking(sys.meta_path[-1])
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
from metasearch.algorithms import inner_loop
assert "learn2learn" not in sys.modules  # not before a model is made
try:
    print(inner_loop.maml()[0].__module__, *asked)
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


class Tied(nn.Module):
    """Layers of which two share a weight, one is frozen and one is not used."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.unused = (nn.Linear(3, 3) for _ in range(3))
        self.frozen = nn.Linear(3, 3).requires_grad_(False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.frozen(self.first(x).tanh()).tanh())


def lacking(*packages):
    """Ask a fresh interpreter that lacks some packages for MAML; return what it says."""
    code = WITHOUT.format(packages=packages)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()


def drawn(module):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return module().double()


def smooth_net():
    return drawn(lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))


def inputs(seed):
    return torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.slow
def test_learn2learn_is_imported_late_and_without_what_it_loads_for_other_algorithms():
    """`import learn2learn` alone stops at the first of these packages."""
    heavy = ["gym", "torchvision", "torchtext", "requests"]
    *said, last = lacking(*heavy, "qpth")
    assert last.split()[0] == "learn2learn.algorithms.maml"
    assert not {*heavy} & {*last.split()}
    assert said == ["INFO:metasearch.algorithms.inner_loop:inner loop: MAML of learn2learn 0.2.0"]


@pytest.mark.slow
def test_without_learn2learn_the_stand_in_serves_and_a_line_says_so():
    line, last = lacking("learn2learn")
    assert last == "metasearch.algorithms.inner_loop learn2learn"
    assert "built-in MAML (learn2learn is not installed" in line


@ORDERS
@pytest.mark.parametrize("net", [smooth_net, lambda: drawn(Tied)], ids=["plain", "tied, frozen, unused"])
def test_the_stand_in_has_the_bits_of_learn2learn(first_order, net):
    """Two clones of one module, three steps, both functions that are used, and the outer gradient."""
    found = []
    for maml, update in (inner_loop.maml(), (inner_loop.BuiltinMAML, inner_loop.builtin_update)):
        module, losses = net(), []
        model = maml(module, lr=0.3, first_order=first_order, allow_unused=True, allow_nograd=True)
        for seed in (1, 2):
            clone = model.clone()
            for step in range(3):
                clone.adapt(clone(inputs(seed + step)).square().mean())
            slopes = [p.detach() if p.requires_grad else None for p in clone.module.parameters()]
            clone.module = update(clone.module, 0.1, slopes)
            losses.append(clone(inputs(9)).cos().mean())
        sum(losses).backward()
        found.append([*losses, *(p.grad for p in module.parameters())])
    assert len(found[0]) == len(found[1])
    assert all(one is other is None or torch.equal(one, other) for one, other in zip(*found, strict=True))


@ORDERS
def test_one_step_on_a_line_by_hand(first_order):
    """L(w) = (w x − y)², w′ = w − α 2x (w x − y), and dL(w′)/dw = 2x (w′ x − y) · dw′/dw, dw′/dw = 1 − 2 α x²."""
    w, x, y, alpha = 0.5, 2.0, 3.0, 0.1
    moved = w - alpha * 2 * x * (w * x - y)
    line = Line(w)
    adapted = Model(line, alpha, first_order).clone()

    adapted.adapt((adapted(x) - y) ** 2)
    ((adapted(x) - y) ** 2).backward()

    assert [weight.item() for weight in adapted.weights] == pytest.approx([moved])
    inner = 1 if first_order else 1 - 2 * alpha * x**2
    assert line.weight.grad.item() == pytest.approx(2 * x * (moved * x - y) * inner)


@ORDERS
def test_each_weight_has_a_rate_of_its_own_and_the_rates_can_be_learned(first_order):
    """w′ = w − ρ ∘ g, so dL(w′)/dρ = −g ∘ ∇L(w′), in first order as in second."""
    net = smooth_net()
    weights = list(net.parameters())
    rates = [torch.rand_like(weight).requires_grad_() for weight in weights]
    gradients = torch.autograd.grad(net(inputs(1)).square().mean(), weights)
    adapted = Model(net, rates, first_order).clone()

    adapted.adapt(adapted(inputs(1)).square().mean())

    moved = adapted.weights
    for new, weight, rate, gradient in zip(moved, weights, rates, gradients, strict=True):
        torch.testing.assert_close(new, weight - rate * gradient, rtol=1e-12, atol=0)
    query = adapted(inputs(2)).cos().mean()
    at_moved = torch.autograd.grad(query, moved, retain_graph=True)
    for found, gradient, pull in zip(torch.autograd.grad(query, rates), gradients, at_moved, strict=True):
        torch.testing.assert_close(found, -gradient * pull, rtol=1e-10, atol=1e-14)


@ORDERS
def test_a_loss_that_is_kept_has_its_gradient_and_the_step_is_the_same(first_order):
    net = smooth_net()
    expected = torch.autograd.grad(net(inputs(1)).square().mean(), list(net.parameters()))
    model = Model(net, 0.3, first_order)
    keeping, plain = model.clone(), model.clone()

    loss = keeping(inputs(1)).square().mean()
    kept = keeping.adapt_and_keep(loss)
    plain.adapt(plain(inputs(1)).square().mean())

    assert torch.equal(kept, loss)
    assert all(torch.equal(one, other) for one, other in zip(keeping.weights, plain.weights, strict=True))
    last = keeping(inputs(2)).square().mean()
    torch.autograd.grad(last, list(net.parameters()))  # each of the two has a graph of its own
    found = torch.autograd.grad(kept, list(net.parameters()))
    assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))


@ORDERS
def test_inner_steps_leave_the_module_and_what_the_loss_does_not_reach_alone(first_order):
    encoder = SmallEncoder()
    net, features = encoder.embedder, encoder.features(["a", "b", "c"], "text")
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    trained = [name for name, weight in net.named_parameters() if weight.requires_grad]
    adapted = Model(net, 0.5, first_order).clone()

    for _ in range(3):
        adapted.adapt(adapted(features)[:, 0].square().mean())

    assert all(torch.equal(weight, before[name]) for name, weight in net.named_parameters())
    moved = dict(zip(trained, adapted.weights, strict=True))
    assert {name for name in trained if torch.equal(moved[name], before[name])} == set(UNUSED)


@ORDERS
def test_tied_weights_stay_tied_through_inner_steps(first_order):
    """The moved weights, put into a network that ties them, give what the model gives."""
    encoder, tied = SmallEncoder(), SmallEncoder(seed=1).embedder
    net, features = encoder.embedder, encoder.features(["a", "b", "c"], "text")
    adapted = Model(net, 0.5, first_order).clone()

    for _ in range(3):
        adapted.adapt(adapted(features)[:, 0].square().mean())
    trained = [name for name, weight in net.named_parameters() if weight.requires_grad]
    tied.load_state_dict(dict(zip(trained, adapted.weights, strict=True)), strict=False)
    tied.load_state_dict({name: p for name, p in net.named_parameters() if not p.requires_grad}, strict=False)

    assert "second.weight" not in trained
    assert torch.equal(tied(features), adapted(features))
    assert not torch.equal(tied(features), net(features))
