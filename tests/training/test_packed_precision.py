"""Fast gradients in bf16: forward passes in bfloat16, attention, weights and gradients in float32."""

from dataclasses import replace

import pytest
import torch

from helpers.backbones import TEXTS
from helpers.gradients import Case, encoder_of, error, outer
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.network import Network

CASES = [Case("maml"), Case("maml-align", sizes=(3, 2, 2)), Case("distill", "translations", (4,))]


def in_bf16(learner, episodes):
    """Return the outer gradient as the trainer asks for it."""
    with torch.autocast("cpu", torch.bfloat16):
        return outer(learner, episodes, OuterGradients(learner.encoder))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "family"), [*zip(CASES, ["bert", "mpnet", "tiny"], strict=True)])
def test_the_gradient_is_near_that_of_float32(case, family):
    encoder = encoder_of(family, torch.float32)
    learner = case.learn(encoder, inner_steps=2)
    episodes = case.episodes()
    exact, found = outer(learner, episodes, OuterGradients(encoder)), in_bf16(learner, episodes)
    assert 0 < error(found, exact) < 0.1
    assert found.loss.item() == pytest.approx(exact.loss.item(), rel=0.05)
    assert {gradient.dtype for gradient in found.dense.values()} == {torch.float32}


def test_attention_of_packed_texts_is_in_float32_and_the_rest_is_not(monkeypatch):
    attention, linear = [], []

    def watch(module, name, seen):
        run = getattr(module, name)

        def watched(*arguments, **options):
            found = run(*arguments, **options)
            seen.append(found.dtype)
            return found

        monkeypatch.setattr(module, name, watched)

    watch(torch.nn.functional, "scaled_dot_product_attention", attention)
    watch(torch.nn.functional, "linear", linear)
    encoder = encoder_of("bert", torch.float32)
    learner = CASES[0].learn(encoder, inner_steps=2)
    in_bf16(learner, CASES[0].episodes())
    assert set(attention) == {torch.float32}
    # The probe of packing runs in float32.
    assert torch.bfloat16 in linear
    attention.clear()
    linear.clear()
    outer(learner, CASES[0].episodes(), OuterGradients(encoder))
    assert set(attention) == set(linear) == {torch.float32}


def test_gradients_of_several_passes_are_added_in_float32():
    """With autocast's cache of weights, passes would share a weight in bfloat16 and add its gradients there."""
    encoder = encoder_of("bert", torch.float32)
    packed = PackedEncoder(encoder)
    batch = packed.lay_out([[("text", text) for text in TEXTS]])
    (texts,), values = batch.texts, batch.cut(packed.weights)

    def gradients(parts):
        weights = [value.detach().clone().requires_grad_() for value in values]
        whole = replace(texts, parts=parts, order=torch.arange(len(TEXTS) * len(parts)))
        with torch.autocast("cpu", torch.bfloat16):  # of the trainer
            vectors = Network(encoder, packed.plan).run(weights, whole, "pooled", bf16=True)
        return torch.autograd.grad(vectors.pow(2).sum(), weights, allow_unused=True)

    # Three equal gradients are added almost exactly in float32; bfloat16 has 8 bits for the sum.
    for once, thrice in zip(gradients(texts.parts), gradients(texts.parts * 3), strict=True):
        assert (once is None) == (thrice is None)
        if once is not None:
            torch.testing.assert_close(thrice, 3 * once, rtol=1e-6, atol=0)
