"""Query adapters: the identity at their start, and their formulas in float64."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from metasearch.encoders.adapter import LowRankAdapter, build_adapter
from metasearch.errors import ConfigError

FORMS = ("matrix", "low-rank", "rotation", "scale")
D = 6


def moved(form):
    """Return an adapter in float64 away from its start."""
    adapter = build_adapter(form, D, rank=2).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in adapter.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 5)
    return adapter


def queries(n=5):
    return F.normalize(torch.randn(n, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64), dim=1)


@pytest.mark.parametrize("form", FORMS)
def test_an_adapter_starts_at_the_identity(form):
    adapter, own = build_adapter(form, D, rank=2).double(), queries()
    assert torch.equal(adapter.matrix(), torch.eye(D, dtype=torch.float64))
    assert torch.allclose(adapter(own), own, rtol=0, atol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_an_adapted_query_is_the_unit_vector_of_the_matrix_times_the_query(form):
    adapter, own = moved(form), queries()
    matrix, plain = adapter.matrix().detach().numpy(), own.numpy()
    expected = np.stack([matrix @ each / np.linalg.norm(matrix @ each) for each in plain])
    np.testing.assert_allclose(adapter(own).detach().numpy(), expected, rtol=0, atol=1e-14)


def test_the_matrix_of_each_form_is_its_formula():
    full, low, turned, scaled = (moved(form) for form in FORMS)
    identity = torch.eye(D, dtype=torch.float64)
    assert torch.equal(full.matrix(), identity + full.delta)
    assert torch.equal(low.matrix(), identity + low.up @ low.down)
    skew = turned.delta - turned.delta.T
    assert torch.allclose(turned.matrix(), (identity - skew).inverse() @ (identity + skew), rtol=0, atol=1e-14)
    assert torch.allclose(turned.matrix() @ turned.matrix().T, identity, rtol=0, atol=1e-14)
    assert torch.equal(scaled.matrix(), torch.diag(1 + scaled.factors))


@pytest.mark.parametrize("form", FORMS)
def test_an_adapter_is_twice_differentiable(form):
    adapter, own = moved(form), queries(3)
    names, values = zip(*adapter.named_parameters(), strict=True)

    def loss(*parameters):
        return torch.func.functional_call(adapter, dict(zip(names, parameters, strict=True)), (own,))[:, :2].sum()

    assert torch.autograd.gradgradcheck(loss, tuple(each.detach().requires_grad_() for each in values))


def test_a_wrong_form_or_rank_is_an_error():
    with pytest.raises(ConfigError, match="form 'matrx': expected one of matrix, low-rank, rotation, scale"):
        build_adapter("matrx", D)
    with pytest.raises(ConfigError, match="rank 7 is out of range, 1 to 6"):
        build_adapter("low-rank", D, rank=7)


def test_the_start_of_a_low_rank_adapter_is_the_same_every_time():
    first, second = LowRankAdapter(D, 2), LowRankAdapter(D, 2)
    assert torch.equal(first.down, second.down)
    assert torch.allclose(first.down @ first.down.T, torch.eye(2), rtol=0, atol=1e-6)
