"""Second order through a real attention layer, whose fused kernel has no second derivative."""

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F

from metasearch.data.benchmark import load_benchmark
from metasearch.episodes.of_benchmark import samplers
from metasearch.jobs.compose import load_encoder, make_learner
from metasearch.spec.library import load_recipe

SMALL = ["episodes.k=2", "episodes.q=2", "episodes.n_neg=1", "options.inner_steps=2", "options.inner_lr=0.1"]
TASK, MODE = "demo", "mono-bi-multi"
SECOND_ORDER = ["maml", "meta-sgd", "maml-align"]


def make(learner, first_order, attention="sdpa"):
    """Make a learner on the built-in encoder in float64, and one episode of three sets."""
    benchmark = load_benchmark(TASK, MODE)
    recipe = load_recipe(learner, [*SMALL, f"options.first_order={str(first_order).lower()}"])
    encoder = load_encoder("tiny", benchmark.task.max_length, device="cpu")
    encoder.embedder.double()
    encoder.model[0].auto_model.set_attn_implementation(attention)
    return make_learner(recipe, encoder), [samplers(benchmark, recipe, seed=0)["meta-train"].episode(0)]


def outer_gradient(learner, episodes):
    learner.outer_loss(episodes).total.backward()
    return {name: parameter.grad for name, parameter in learner.named_parameters() if parameter.grad is not None}


def difference(found, expected):
    off = torch.cat([(found[name] - value).flatten() for name, value in expected.items()])
    return (off.norm() / torch.cat([value.flatten() for value in expected.values()]).norm()).item()


def fused_kernel_stops_at_the_first_derivative():
    query = torch.ones(1, 2, 3, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        F.scaled_dot_product_attention(query, query, query).square().sum(), query, create_graph=True
    )
    try:
        gradient.sum().backward()
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("learner", SECOND_ORDER)
def test_second_order_gradient_equals_that_of_plain_attention(learner):
    fused = outer_gradient(*make(learner, first_order=False))
    plain = outer_gradient(*make(learner, first_order=False, attention="eager"))
    first_order = outer_gradient(*make(learner, first_order=True))

    assert fused.keys() == plain.keys()
    assert difference(fused, plain) < 1e-10
    assert difference(first_order, plain) > 1e-3


@pytest.mark.parametrize(
    ("learner", "settings", "fused"),
    [
        ("fine-tune", [], True),
        ("reptile", [], True),
        *((name, ["options.first_order=true"], True) for name in SECOND_ORDER),
        *((name, ["options.first_order=false"], False) for name in SECOND_ORDER),
    ],
)
def test_the_fused_kernel_is_off_in_second_order_only(learner, settings, fused):
    made = make_learner(load_recipe(learner, settings), load_encoder("tiny", device="cpu"))

    with made.attention():
        assert torch.backends.cuda.flash_sdp_enabled() == fused
    assert torch.backends.cuda.flash_sdp_enabled()


@pytest.mark.skipif(not fused_kernel_stops_at_the_first_derivative(), reason="this torch can derive it twice")
@pytest.mark.parametrize("learner", SECOND_ORDER)
def test_without_its_attention_context_second_order_fails(learner, monkeypatch):
    made, episodes = make(learner, first_order=False)
    monkeypatch.setattr(made, "attention", nullcontext)

    with pytest.raises(RuntimeError, match=r"derivative for .*attention.* is not implemented"):
        outer_gradient(made, episodes)
