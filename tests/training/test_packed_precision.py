"""Fast gradients in bf16: forward passes in bfloat16, attention, weights and gradients in float32."""

import pytest
import torch

from helpers.gradients import Case, encoder_of, error, outer
from metasearch.training.outer_gradients import OuterGradients

CASES = [
    Case("maml"),
    Case("maml-align", sizes=(3, 2, 2)),
    Case("distill", "translations", (4,)),
]


def in_bf16(learner, episodes):
    """Return the outer gradient as the trainer asks for it."""
    with torch.autocast("cpu", torch.bfloat16):
        return outer(learner, episodes, OuterGradients(learner.encoder))


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


@pytest.mark.parametrize(
    ("case", "checkpointing"),
    [
        (Case("maml"), "gradcache"),
        (Case("maml-align", sizes=(3, 2, 2)), "layers"),
        (Case("reptile"), "off"),
    ],
)
def test_every_pass_has_the_weights_of_its_inner_step(case, checkpointing):
    """Autocast keeps weights in bfloat16 as long as its outermost context lasts: here that of the trainer.

    A thread of its own is in no such context.
    """
    encoder = encoder_of("bert", torch.float32)
    learner, episodes = case.learn(encoder, inner_steps=2), case.episodes()
    with torch.autocast("cpu", torch.bfloat16):
        here, apart = (
            outer(learner, episodes, OuterGradients(encoder, workers=workers, checkpointing=checkpointing))
            for workers in (1, 2)
        )
    assert error(here, apart) < 0.01
