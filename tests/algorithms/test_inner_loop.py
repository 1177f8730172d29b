"""The inner loop on learn2learn: what a model shares with it, the stand-in, and which of the two serves."""

import subprocess
import sys

import pytest
import torch
from torch import nn

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
