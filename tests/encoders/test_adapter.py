"""Query adapters: the identity at their start, and their formula in float64."""

import numpy as np
import torch
from torch.nn import functional as F

from metasearch.encoders.adapter import MatrixAdapter

D = 6


def moved():
    """Return an adapter in float64 away from its start."""
    adapter, generator = MatrixAdapter(D).double(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        adapter.delta.add_(torch.randn(D, D, generator=generator, dtype=torch.float64) / 5)
    return adapter


def queries(n=5):
    return F.normalize(torch.randn(n, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64), dim=1)


def test_an_adapter_starts_at_the_identity():
    adapter, own = MatrixAdapter(D).double(), queries()
    assert torch.equal(adapter.matrix(), torch.eye(D, dtype=torch.float64))
    assert torch.allclose(adapter(own), own, rtol=0, atol=1e-15)


def test_an_adapted_query_is_the_unit_vector_of_the_matrix_times_the_query():
    adapter, own = moved(), queries()
    assert torch.equal(adapter.matrix(), torch.eye(D, dtype=torch.float64) + adapter.delta)
    matrix, plain = adapter.matrix().detach().numpy(), own.numpy()
    expected = np.stack([matrix @ each / np.linalg.norm(matrix @ each) for each in plain])
    np.testing.assert_allclose(adapter(own).detach().numpy(), expected, rtol=0, atol=1e-14)
    assert torch.allclose(MatrixAdapter.of(adapter.matrix()).delta, adapter.delta, rtol=0, atol=1e-15)
