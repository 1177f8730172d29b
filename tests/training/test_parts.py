"""Texts that are encoded in parts on several threads: how they are cut, and that the gradient stays what it was."""

import numpy as np
import pytest
import torch

from metasearch.config.roles import MaxLength
from metasearch.config.seeding import stream
from metasearch.encoders.builtin import tiny
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.parts import Parts, cut

EXACT = 1e-10
WORDS = ["the", "key", "is", "under", "mat", "where", "does", "a", "cat", "sleep", "old", "house", "sea"]
TEXTS = [" ".join(stream(0, "text", i).choice(WORDS, 4 + i % 37)) for i in range(45)]
ORDERS = {"as they come": TEXTS, "longest first": sorted(TEXTS, key=len, reverse=True)}


@pytest.fixture(scope="module")
def encoder():
    """Return an encoder in float64."""
    made = tiny.build(MaxLength(text=64))
    made.embedder.double()
    return made


def trained(encoder):
    return [weight for weight in encoder.embedder.parameters() if weight.requires_grad]


def gradient(encoder, workers, texts=TEXTS, output="pooled"):
    """Return the parts' batch and the gradient."""
    parts = Parts(PackedEncoder(encoder, workers=workers), texts, output)
    outputs, back = parts.begin(parts.batch.cut(trained(encoder)))
    outputs.requires_grad_()
    # Every text is compared with every other, so that no part has a loss of its own.
    weight = torch.linspace(-1, 2, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
    loss = (outputs @ outputs.T).square().mean() + (weight * outputs).sum()
    return parts.batch, back(*torch.autograd.grad(loss, [outputs]))


def off(found, expected):
    """Return the relative error of a whole gradient; a weight that has none must have none."""
    assert [g is None for g in found] == [g is None for g in expected]
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if b is not None]
    return (sum((a - b).square().sum() for a, b in pairs) / sum(b.square().sum() for _, b in pairs)).sqrt().item()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "order", "workers"), [("pooled", "as they come", 2), ("embedding", "longest first", 3)]
)
def test_the_gradient_in_parts_is_that_in_one(encoder, output, order, workers):
    texts = ORDERS[order]
    batch, found = gradient(encoder, workers, texts, output)
    whole, expected = gradient(encoder, 1, texts, output)
    assert (len(batch.texts), len(whole.texts)) == (workers, 1)
    assert batch.rows.equal(whole.rows)
    assert off(found, expected) < EXACT


@pytest.mark.slow
def test_outputs_are_in_the_order_of_the_texts_without_gradient_and_dropout(encoder):
    encoder.embedder.train()
    try:
        parts = Parts(PackedEncoder(encoder, workers=2), TEXTS, "pooled")
        found = parts.outputs(parts.batch.cut(trained(encoder)))
        assert encoder.embedder.training
    finally:
        encoder.embedder.eval()
    assert not found.requires_grad
    with torch.no_grad():
        alone = [encoder.embedder(encoder.features([text], "text"), "pooled") for text in TEXTS]
    torch.testing.assert_close(found, torch.cat(alone), rtol=EXACT, atol=EXACT)


def test_tokens_stay_in_one_part_as_their_order_is_that_of_the_texts(encoder):
    batch, found = gradient(encoder, 3, TEXTS[:9], "states")
    assert len(batch.texts) == 1
    assert off(found, gradient(encoder, 1, TEXTS[:9], "states")[1]) == 0


@pytest.mark.parametrize("count", [2, 3, 5])
def test_parts_hold_every_text_once_and_about_as_many_tokens_each_with_equal_lengths_together(encoder, count):
    lengths = encoder.lengths(TEXTS, "text")
    parts = cut(encoder, TEXTS, count, least=1)
    assert sorted(i for part in parts for i in part) == list(range(len(TEXTS)))
    row = np.concatenate([lengths[part] for part in parts])
    assert (np.diff(row) >= 0).all()
    assert all(abs(lengths[part].sum() - lengths.sum() / count) <= lengths.max() for part in parts)
