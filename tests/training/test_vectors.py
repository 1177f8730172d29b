"""The slice of an adapter: as many columns as the questions of a meta-batch span, and the same descent."""

import torch

from helpers.small import adapted_encoder
from metasearch.training.packing.vectors import PackedVectors

QUESTIONS = [[("question", "a"), ("question", "b"), ("candidate", "x")], [("question", "b"), ("candidate", "y")]]


def test_the_slice_acts_on_the_questions_as_the_whole_matrix_does():
    encoder = adapted_encoder(pairs=False)
    packed, size = PackedVectors(encoder), encoder.dimension()
    batch = packed.lay_out(QUESTIONS)
    (cut,) = batch.cut(packed.weights)
    gradient = torch.eye(size, 2, dtype=torch.float64)
    (spread,) = batch.spread([gradient])

    assert cut.shape == (size, 2)
    whole = packed.weights[0].detach()
    # A step on the slice is a step on the matrix: (Δ − G) Bᵀ = Δ Bᵀ − (G Bᵀ).
    torch.testing.assert_close(batch.cut([whole - spread])[0], cut - gradient, rtol=0, atol=1e-12)
    assert torch.isclose(spread.norm(), gradient.norm(), rtol=1e-12)

    def run(weights):
        return packed.each(batch.texts, lambda network, texts: network.run(weights, texts))

    for sliced, plain in zip(run([cut]), run([whole]), strict=True):
        torch.testing.assert_close(sliced, plain, rtol=0, atol=1e-12)


def test_rates_of_each_weight_and_many_questions_take_the_whole_matrix():
    encoder = adapted_encoder(pairs=False)
    packed, size = PackedVectors(encoder), encoder.dimension()
    rates = torch.ones(size, size, dtype=torch.float64)
    assert [each.shape for each in packed.lay_out(QUESTIONS).cut([*packed.weights, rates])] == [(size, size)] * 2
    many = [[("question", f"{i}") for i in range(size)]]
    assert packed.lay_out(many).cut(packed.weights)[0].shape == (size, size)
