"""Losses of multi-stage distillation, against the sums of the paper (Ding et al., equations 2 to 7 and Table 5)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.reference import gradients
from helpers.small import cosine
from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.config import registry

KINDS = ("soft", "bool", "ce", "ce-hard")
shapes = st.tuples(st.integers(1, 7), st.integers(1, 6), st.integers(0, 1000))


def drawn(seed: int, *shape: int) -> Tensor:
    """Return normal numbers in float64, with gradients."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


def contrast(kind: str, teacher: Tensor, source: Tensor, target: Tensor, texts: list, temperature: float) -> Tensor:
    """Return the loss of N translations; equal `texts` are the same source."""
    loss = registry.load("losses", f"contrast-{kind}").LOSS
    options = {"temperature": temperature} if kind.startswith("ce") else {}
    numbers = torch.tensor([texts.index(text) for text in texts])
    columns = {"teacher": teacher, "source": source, "target": target}
    return loss(loss.Options(**options))(EmbeddedSet(columns, {"source": numbers}))


def by_hand(kind: str, teacher: Tensor, source: Tensor, target: Tensor, texts: list, temperature: float) -> Tensor:
    """The sums over i and j, term by term."""
    n = len(texts)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(n):
        row = [cosine(source[i], target[j]) for j in range(n)]
        partition = sum(torch.exp(value / temperature) for value in row)
        others = [row[j] for j in range(n) if j == i or texts[j] != texts[i]]
        if kind == "ce-hard":
            total = total - (row[i] / temperature - torch.log(sum(torch.exp(v / temperature) for v in others))) / n
            continue
        for j in range(n):
            wanted = cosine(teacher[i], teacher[j])
            if kind == "soft":
                total = total + (wanted - row[j]) ** 2 / n**2
            elif kind == "bool":
                total = total + ((1.0 if texts[i] == texts[j] else 0.0) - row[j]) ** 2 / n**2
            else:
                total = total - wanted * torch.log(torch.exp(row[j] / temperature) / partition) / n
    return total


@given(shapes, st.sampled_from(KINDS), st.sampled_from([0.05, 0.5, 1.0]))
def test_the_contrastive_loss_and_its_gradient_are_those_of_the_sums(shape, kind, temperature):
    n, d, seed = shape
    teacher = drawn(seed, n, d).detach()
    source, target = drawn(seed + 1, n, d), drawn(seed + 2, n, d)
    texts = [i // 2 for i in range(n)]  # two in a row are the same text
    expected = by_hand(kind, teacher, source, target, texts, temperature)
    found = contrast(kind, teacher, source, target, texts, temperature)
    assert found.item() == pytest.approx(expected.item(), rel=1e-10, abs=1e-14)
    weights = {"source": source, "target": target}
    wanted = gradients(expected, weights)
    for name, value in gradients(found, weights).items():
        torch.testing.assert_close(value, wanted[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_not_rounded_to_bfloat16_where_forward_passes_run_in_it(kind):
    """Differences of cosines are what is learned from; bfloat16 has 8 bits of them."""
    vectors = [drawn(seed, 16, 32).detach().float() for seed in range(3)]
    exact = contrast(kind, *vectors, range(16), 0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = contrast(kind, *vectors, range(16), 0.05)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(exact.item(), rel=1e-6)
