"""LARS against its paper written out by hand; exempt parameters; and its state by name."""

import pytest
import torch
from torch import nn

from metasearch.config.recipe import Outer
from metasearch.training import optimizer as outer
from metasearch.training.optimizer import LARS

SHAPES = {"table": (7, 3), "matrix": (3, 3), "bias": (3,)}
RATES = [0.1, 0.4, 0.3, 0.2]


def drawn(seed):
    """Return a tensor of each shape, drawn from a normal distribution."""
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(shape, generator=generator, dtype=torch.float64) for n, shape in SHAPES.items()}


def parameters(dtype=torch.float64):
    return {name: nn.Parameter(value.to(dtype)) for name, value in drawn(0).items()}


def take(optimizer, weights, gradients, lr=None):
    """Take one step with these gradients."""
    for name, weight in weights.items():
        weight.grad = gradients[name].to(weight.dtype, copy=True)
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] if lr is None else lr
    optimizer.step()


def same(left, right):
    return all(torch.equal(left[name], right[name]) for name in SHAPES)


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.3)])
def test_a_step_is_that_of_the_paper_also_while_the_rate_changes(momentum, decay):
    """λ = η ‖w‖ / (‖g‖ + β ‖w‖); v ← m v + γ λ (g + β w); w ← w − v."""
    weights, eta = parameters(), 0.02
    expected, velocity = drawn(0), {name: 0.0 for name in SHAPES}
    optimizer = LARS(weights.values(), lr=1.0, momentum=momentum, weight_decay=decay, trust=eta)
    for i, gamma in enumerate(RATES):
        gradients = drawn(i + 1)
        for name, g in gradients.items():
            w = expected[name]
            norm_w, norm_g = w.square().sum().sqrt(), g.square().sum().sqrt()
            local = eta * norm_w / (norm_g + decay * norm_w)
            velocity[name] = momentum * velocity[name] + gamma * local * (g + decay * w)
            expected[name] = w - velocity[name]
        take(optimizer, weights, gradients, gamma)
    for name in SHAPES:
        torch.testing.assert_close(weights[name].detach(), expected[name], rtol=1e-13, atol=0)


@pytest.mark.parametrize("exempt", [False, True])
def test_the_state_by_name_goes_on_to_the_same_bits(exempt):
    settings = Outer(optimizer="lars", lr=0.1, weight_decay=0.1, exempt_bias_and_norm=exempt)
    whole = parameters(torch.float32)
    optimizer = outer.build(whole, settings)
    for i in range(2):
        take(optimizer, whole, drawn(i))
    kept = {name: value.clone() for name, value in outer.state(optimizer, whole).items()}
    resumed = {name: nn.Parameter(weight.detach().clone()) for name, weight in whole.items()}
    another = outer.build(resumed, settings)
    outer.restore(another, resumed, kept)
    forgetful = {name: nn.Parameter(weight.detach().clone()) for name, weight in whole.items()}
    for chosen, weights in ((optimizer, whole), (another, resumed), (outer.build(forgetful, settings), forgetful)):
        for i in (2, 3):
            take(chosen, weights, drawn(i))
    assert same(resumed, whole)
    assert not same(forgetful, whole)
    assert {name.split("/")[0] for name in kept} == set(SHAPES)
