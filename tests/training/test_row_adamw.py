"""AdamW on row gradients against torch's AdamW on the same gradients, dense."""

import pytest
import torch
from torch import nn

from metasearch.config.recipe import Outer
from metasearch.training import optimizer
from metasearch.training import optimizer as outer
from metasearch.training.checkpoint import Checkpoint, CheckpointStore
from metasearch.training.optimizer import RowAdamW
from metasearch.training.schedule import rate

V, H = 3000, 5
COMMON, RARE = 40, 60


def drawn(seed, *shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def sparse(rows, values, size=V):
    """Return the gradient of a table `(size, ...)` that has these values in these rows."""
    shape = (size, *values.shape[1:])
    return torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=True)


def row_gradient(step, dtype=torch.float64):
    """Return a gradient of rows as words have them: some are in every batch, most in few."""
    rare = torch.randperm(V - COMMON, generator=torch.Generator().manual_seed(step))[:RARE] + COMMON
    rows = torch.cat([torch.arange(COMMON), rare.sort().values])
    return sparse(rows, drawn(step, len(rows), H, dtype=dtype))


def table(dtype=torch.float64):
    return nn.Parameter(drawn(1000, V, H, dtype=dtype))


def dense(gradient):
    return gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient


def take(optimizer, parameter, gradient, lr=None):
    parameter.grad = None if gradient is None else gradient.clone()
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] if lr is None else lr
    optimizer.step()


def assert_equal(found, expected):
    """Assert that weights are equal in the digits that two ways to sum leave in float64."""
    torch.testing.assert_close(found.detach(), expected.detach(), rtol=1e-12, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "decay", "shape"), [(1, 0.1, "linear"), (32 * H, 0.1, "cosine"), (2**18, 0.0, "none")]
)
def test_sixty_steps_are_those_of_adamw_on_the_dense_gradient(monkeypatch, block, decay, shape):
    monkeypatch.setattr(optimizer, "BLOCK", block)
    settings = Outer(lr=0.01, warmup=0.2, decay=shape, weight_decay=decay)
    found, expected = table(), table()
    rows = RowAdamW([found], lr=1.0, weight_decay=decay)
    whole = torch.optim.AdamW([expected], lr=1.0, weight_decay=decay, foreach=False)
    for i in range(60 if block > 1 else 6):
        gradient, lr = row_gradient(i), settings.lr * rate(i + 1, 60, settings)
        take(rows, found, gradient, lr)
        take(whole, expected, gradient.to_dense(), lr)
    assert_equal(found, expected)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_in_float32_a_table_of_whole_vectors_has_the_bits_of_the_fused_kernel(decay):
    """A width of 16 leaves no rest that the kernel computes in another way."""
    found, expected = (nn.Parameter(drawn(0, V, 16, dtype=torch.float32)) for _ in range(2))
    rows = RowAdamW([found], lr=0.01, weight_decay=decay)
    whole = torch.optim.AdamW([expected], lr=0.01, weight_decay=decay, fused=True)
    for i in range(20):
        indices = row_gradient(i).indices()[0]
        gradient = sparse(indices, drawn(i, len(indices), 16, dtype=torch.float32))
        take(rows, found, gradient)
        take(whole, expected, gradient.to_dense())
    assert torch.equal(found, expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_on_a_gpu_the_steps_and_the_state_are_those_of_the_cpu():
    settings, found, expected = Outer(lr=0.01, weight_decay=0.1), {"words": table()}, {"words": table()}
    found["words"] = nn.Parameter(found["words"].detach().cuda())
    optimizer, here = outer.build(found, settings), outer.build(expected, settings)
    for i in range(30):
        take(optimizer, found["words"], row_gradient(i).cuda())
        take(here, expected["words"], row_gradient(i))
    assert_equal(found["words"].cpu(), expected["words"])
    kept = outer.state(optimizer, found)
    assert {value.device.type for value in kept.values()} == {"cuda"}
    assert torch.equal(kept["words/rows"].cpu(), outer.state(here, expected)["words/rows"])


NOTHING = sparse(torch.empty(0, dtype=torch.long), torch.empty(0, H, dtype=torch.float64))
ZERO = sparse(torch.tensor([2, 50, 70]), torch.zeros(3, H, dtype=torch.float64))
KINDS = {
    "rows": row_gradient,
    "dense": lambda i: drawn(i, V, H),
    "no rows": lambda i: NOTHING,
    "rows of zeros": lambda i: ZERO,
    "none": lambda i: None,
    "elements": lambda i: row_gradient(i).to_dense().to_sparse(),
}


@pytest.mark.parametrize(
    "kinds",
    [
        ["none", "rows", "none", "rows"],
        ["no rows", "rows", "no rows", "none", "no rows"],
        ["rows of zeros", "rows", "rows of zeros"],
        ["dense", "rows", "dense", "none", "rows"],
        ["rows", "rows", "dense", "rows", "no rows"],
        ["rows", "elements", "rows"],
    ],
    ids=", ".join,
)
def test_gradients_of_all_kinds_may_follow_each_other(kinds):
    for fused in (True, False) if "dense" in kinds else (True,):
        found, expected = table(), table()
        rows = RowAdamW([found], lr=0.01, weight_decay=0.1, fused=fused)
        whole = torch.optim.AdamW([expected], lr=0.01, weight_decay=0.1, foreach=False)
        for i, kind in enumerate(kinds):
            take(rows, found, KINDS[kind](i))
            take(whole, expected, dense(KINDS[kind](i)))
            assert_equal(found, expected)


def test_exempt_groups_and_dense_parameters_are_stepped_in_the_same_optimiser():
    """Two tables, one of them of single numbers (and so exempt from decay), beside a matrix and a bias."""
    shapes = {"table": (V, H), "numbers": (V,), "matrix": (H, H), "bias": (H,)}
    settings = Outer(lr=0.01, weight_decay=0.3, exempt_bias_and_norm=True)
    found, expected = ({name: nn.Parameter(drawn(0, *shape)) for name, shape in shapes.items()} for _ in range(2))
    optimizer = outer.build(found, settings)
    decayed, exempt = [[expected[name] for name in names] for names in (("table", "matrix"), ("numbers", "bias"))]
    groups = [{"params": decayed}, {"params": exempt, "weight_decay": 0.0}]
    whole = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.3, foreach=False)
    for i in range(8):
        chosen = row_gradient(i).indices()[0]
        gradients = {name: drawn(i, *shape) for name, shape in shapes.items()}
        for name in ("table", "numbers"):
            gradients[name] = sparse(chosen, gradients[name][chosen])
        for name, gradient in gradients.items():
            found[name].grad, expected[name].grad = gradient, dense(gradient)
        optimizer.step()
        whole.step()
    for name in shapes:
        assert_equal(found[name], expected[name])


@pytest.mark.parametrize(("stop", "used"), [(3, True), (17, False)])
def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path, stop, used):
    settings = Outer(lr=0.01, weight_decay=0.1)
    whole, half = {"words.weight": table(torch.float32)}, {"words.weight": table(torch.float32)}
    first, second = outer.build(whole, settings), outer.build(half, settings)
    for i in range(30):
        take(first, whole["words.weight"], row_gradient(i, torch.float32))
    for i in range(stop):
        take(second, half["words.weight"], row_gradient(i, torch.float32))
    store = CheckpointStore(tmp_path)
    weights = {name: weight.detach() for name, weight in half.items()}
    store.save(Checkpoint(weights, outer.state(second, half), {}, {}, {}))
    kept = store.load()
    resumed = {name: nn.Parameter(weight) for name, weight in kept.weights.items()}
    third = outer.build(resumed, settings)
    if used:  # as one that went on and is put back
        take(third, resumed["words.weight"], row_gradient(99, torch.float32))
        resumed["words.weight"].data.copy_(weights["words.weight"])
    outer.restore(third, resumed, kept.optimizer)
    for i in range(stop, 30):
        take(third, resumed["words.weight"], row_gradient(i, torch.float32))
    assert torch.equal(resumed["words.weight"], whole["words.weight"])
    left, right = outer.state(third, resumed), outer.state(first, whole)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
