"""Merged layers and narrower feed-forward blocks: the neurons that stay take over what the others did."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mini.merging import RIDGE, LeastSquares, Moments, find_block, group_layers, merge
from helpers.backbones import TEXTS, make
from metasearch.encoders.compressed import layers_of

NEURONS = 24


def drawn(seed, tokens=200, neurons=7, columns=3):
    """Values of neurons that depend on each other, with the weights that read them, in float64."""
    random = torch.Generator().manual_seed(seed)
    mixed = torch.randn(neurons, neurons, generator=random, dtype=torch.float64)
    values = torch.randn(tokens, neurons, generator=random, dtype=torch.float64) @ mixed
    return values - values.mean(0), torch.randn(columns, neurons, generator=random, dtype=torch.float64)


def least_squares(values, weight, kept):
    """Solve for W' on the values themselves, the ridge written as further rows of them; returns it and its error."""
    count, neurons = values.shape
    ridge = RIDGE * values.square().mean(0).mean()
    rows = torch.cat([values, (ridge * count).sqrt() * torch.eye(neurons, dtype=torch.float64)])
    found = torch.linalg.lstsq(rows[:, kept], rows @ weight.T).solution
    return found.T, float((rows[:, kept] @ found - rows @ weight.T).square().sum())


def regression(values, weight):
    """Return the regression of what `weight` reads from the values, with a ridge that pulls to it."""
    moments = Moments()
    moments.add(torch.cat([values, values @ weight.T], dim=1))
    return LeastSquares(moments, weight)


@pytest.mark.parametrize("seed", range(2))
def test_he_et_al_2017_equation_1_the_new_weights_are_those_of_least_squares(seed):
    values, weight = drawn(seed)
    fit = regression(values, weight)
    kept = fit.choose(4)
    torch.testing.assert_close(fit.solve(kept), least_squares(values, weight, kept)[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_chen_et_al_1989_each_neuron_is_the_one_that_explains_most_of_what_is_left(seed):
    values, weight = drawn(seed)
    chosen = []
    for count in range(1, 7):
        errors = {i: least_squares(values, weight, [*chosen, i])[1] for i in range(7) if i not in chosen}
        chosen.append(min(errors, key=errors.get))
        assert regression(values, weight).choose(count) == sorted(chosen)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_nothing_is_lost_where_neurons_say_the_same_twice(kind):
    encoder = make(kind)
    half = NEURONS // 2
    for layer in layers_of(encoder.model[0].auto_model):
        into = find_block(layer).into
        with torch.no_grad():
            into.weight[half:], into.bias[half:] = into.weight[:half], into.bias[:half]
    new = merge(encoder, None, half, TEXTS)
    np.testing.assert_allclose(new.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=5e-3)
    assert new.parameter_count == encoder.parameter_count - 6 * half * (16 + 1 + 16)


def test_a_merged_layer_solves_the_equations_of_least_squares_on_what_is_below_it():
    encoder = make("bert")
    merged = merge(encoder, 3, 10, TEXTS)
    stack, old = (layers_of(e.model[0].auto_model) for e in (merged, encoder))
    seen = {}
    hooks = [
        find_block(stack[1]).out.register_forward_pre_hook(lambda _, values: seen.update(neurons=values[0])),
        find_block(stack[1]).into.register_forward_pre_hook(lambda _, values: seen.update(read=values[0])),
        find_block(old[3]).norm.register_forward_pre_hook(lambda _, values: seen.update(total=values[0])),
    ]
    parts = {name: [] for name in ("neurons", "read", "total")}
    for text in TEXTS:
        for each in (merged, encoder):
            each.embedder(each.features([text], "text"))
        for name, values in seen.items():
            parts[name].append(values.detach().double().flatten(0, 1))
    for hook in hooks:
        hook.remove()
    neurons, read, total = (torch.cat(parts[name]) for name in ("neurons", "read", "total"))
    out = find_block(stack[1]).out
    ours = total - read - (neurons @ out.weight.double().T + out.bias.double())
    with_one = torch.cat([neurons, torch.ones(len(neurons), 1).double()], dim=1)
    best = total - read - with_one @ torch.linalg.lstsq(with_one, total - read).solution
    # The ridge, 1e-4 of a neuron's variance, costs next to nothing; the bias is exact.
    assert best.norm() <= ours.norm() <= 1.01 * best.norm()
    torch.testing.assert_close(ours.mean(0), torch.zeros_like(ours[0]), rtol=0, atol=1e-5)


def test_groups_are_of_equal_size_if_possible():
    assert group_layers(6, 3) == [range(0, 2), range(2, 4), range(4, 6)]
    assert group_layers(6, 4) == [range(0, 2), range(2, 3), range(3, 4), range(4, 6)]


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 1e4]))
def test_mean_and_covariance_are_exact_however_high_the_values_are(seed, height):
    values = drawn(seed)[0] + height
    moments = Moments()
    for part in values.float().split(37):
        moments.add(part)
    mean, covariance = moments.finish()
    torch.testing.assert_close(mean, values.float().double().mean(0), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(covariance, torch.cov(values.float().double().T, correction=0), rtol=1e-3, atol=1e-3)
