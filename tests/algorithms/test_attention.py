"""Second order through a real attention layer, whose fused kernel has no second derivative."""

from functools import partial

import pytest
import torch
from torch.func import functional_call

from helpers.reference import gradients, weights_of
from metasearch.algorithms.base import EpisodeLearner
from metasearch.config.base import FrozenConfig
from metasearch.config.library import load_recipe
from metasearch.config.recipe import Loss
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.episodes.samplers import samplers
from metasearch.pipelines.factory import make_learner
from metasearch.training.outer_gradients import OuterGradients

SMALL = ["episodes.k=2", "episodes.q=2", "episodes.n_neg=1", "options.inner_steps=2", "options.inner_lr=0.1"]
TASK, MODE = "demo", "mono-bi-multi"
SECOND_ORDER = ["maml", "meta-sgd", "maml-align"]
RATE = 0.1


def make_encoder(attention="sdpa"):
    """Return the built-in encoder in float64, and one episode of three sets."""
    benchmark = load_benchmark(TASK, MODE)
    encoder = load_encoder("tiny", benchmark.task.max_length, device="cpu")
    encoder.embedder.double()
    encoder.model[0].auto_model.set_attn_implementation(attention)
    return encoder, [samplers(benchmark, load_recipe("maml", SMALL), seed=0)["meta-train"].episode(0)]


class Written(EpisodeLearner):
    """A second-order learner of a user: one inner step, and the loss of the second set."""

    class Options(FrozenConfig):
        """It has no order, so that it is of second order."""

        inner_lr: float = RATE

    def losses(self, model, sets):
        yield "task", self.loss(self.adapted(model, sets[0], steps=1), sets[1])


def by_hand(encoder, episodes):
    """Return the gradient of that loss, with dictionaries of weights, on plain attention."""
    weights = weights_of(encoder.embedder)

    def loss(values, examples):
        def embed(role, texts):
            return functional_call(encoder.embedder, values, (encoder.features(texts, role),))

        question = embed("question", [t.question.text for t in examples.examples])
        near, far = (
            embed("candidate", [getattr(t, s).text for t in examples.examples]) for s in ("positive", "negative")
        )
        gaps = [(question - side + 1e-6).square().sum(dim=1).sqrt() for side in (near, far)]
        return torch.clamp(gaps[0] - gaps[1] + 1.0, min=0).mean()

    total = 0.0
    for episode in episodes:
        steps = gradients(loss(weights, episode.sets[0]), weights, create_graph=True)
        moved = {name: weight - RATE * steps[name] for name, weight in weights.items()}
        total = total + loss(moved, episode.sets[1]) / len(episodes)
    return gradients(total, weights)


def test_a_learner_written_from_the_base_alone_has_the_gradient_written_out_by_hand():
    encoder, episodes = make_encoder()
    plain, _ = make_encoder("eager")
    expected = by_hand(plain, episodes)

    learner = Written(encoder, Loss(), Written.Options())
    OuterGradients(encoder)(learner, episodes)

    found = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.to_dense() for name, p in learner.named_parameters()
    }
    whole = torch.cat([value.flatten() for value in expected.values()]).norm()
    assert max((found[name] - value).norm() / whole for name, value in expected.items()) < 1e-10
    assert whole > 1e-3


@pytest.mark.parametrize(
    ("learner", "settings", "fused"),
    [
        ("fine-tune", [], True),
        ("maml", ["options.first_order=true"], True),
        *((name, ["options.first_order=false"], False) for name in SECOND_ORDER),
    ],
)
def test_the_fused_kernel_is_off_in_second_order_only(learner, settings, fused, monkeypatch):
    made, seen = make_learner(load_recipe(learner, settings), load_encoder("tiny", device="cpu")), []

    def losses(model, sets):
        seen.append(torch.backends.cuda.flash_sdp_enabled())
        yield "task", model.weights[0].sum()

    monkeypatch.setattr(made, "losses", losses)
    monkeypatch.setattr(made, "combine", partial(EpisodeLearner.combine, made))
    OuterGradients(made.encoder)(made, make_encoder()[1])

    assert seen == [fused]
    assert torch.backends.cuda.flash_sdp_enabled()
