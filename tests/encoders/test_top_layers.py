"""Top layers on stored states of the lower ones: the vectors and gradients of the whole encoder, and its weights."""

import numpy as np
import pytest
import torch

from helpers.backbones import make
from metasearch.encoders.top_layers import TopEncoder, lower_states

TEXTS = {"question": ["Where is the key?", "Wo?", "Where is the key?"], "candidate": ["Under the mat. " * 9, "There"]}


def project(vectors):
    return (vectors * torch.linspace(-1, 1, vectors.numel(), dtype=vectors.dtype).view_as(vectors)).sum()


@pytest.mark.parametrize("top", [1, 2])
def test_vectors_and_gradients_are_those_of_the_whole_encoder(top):
    whole = make("bert", layers=3)
    whole.embedder.double()
    fast = TopEncoder(whole, lower_states(whole, top, TEXTS))
    trained = {name: weight for name, weight in fast.embedder.named_parameters() if weight.requires_grad}
    shared = {id(weight): name for name, weight in whole.embedder.named_parameters()}
    assert all(id(weight) in shared for weight in trained.values())
    for role, texts in TEXTS.items():
        vectors, expected = (each.embedder(each.features(texts, role)) for each in (fast, whole))
        torch.testing.assert_close(vectors, expected, rtol=0, atol=1e-12)
        found, right = (
            torch.autograd.grad(project(each), list(trained.values()), allow_unused=True)
            for each in (vectors, expected)
        )
        assert any(each is not None and each.abs().max() > 0 for each in right)
        for one, other in zip(found, right, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_training_the_top_layers_trains_the_encoder():
    whole = make("bert", layers=3)
    before = whole.encode(TEXTS["candidate"], "candidate")
    fast = TopEncoder(whole, lower_states(whole, 1, TEXTS))
    with torch.no_grad():
        for weight in fast.embedder.parameters():
            weight.mul_(1.01 if weight.requires_grad else 1)
    after = whole.encode(TEXTS["candidate"], "candidate")
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(fast.encode(TEXTS["candidate"], "candidate"), after, rtol=0, atol=1e-6)


def test_an_encoder_without_layers_below_has_no_states():
    assert lower_states(make("bert", layers=1), 12, TEXTS) is None
    whole = make("bert", layers=3)
    fast = TopEncoder(whole, lower_states(whole, 1, TEXTS))
    assert np.array_equal(fast.encode(["Where is it?"], "question"), whole.encode(["Where is it?"], "question"))
