"""The fused kernel of attention, which has no second derivative."""

from functools import partial

import pytest
import torch

from metasearch.algorithms.base import EpisodeLearner
from metasearch.config.library import load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.episodes.samplers import samplers
from metasearch.pipelines.factory import make_learner
from metasearch.training.outer_gradients import OuterGradients

SMALL = ["episodes.k=2", "episodes.q=2", "episodes.n_neg=1"]
SECOND_ORDER = ["maml", "meta-sgd", "maml-align"]


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
    sampler = samplers(load_benchmark("demo", "mono-bi-multi"), load_recipe("maml", SMALL), seed=0)["meta-train"]
    OuterGradients(made.encoder)(made, [sampler.episode(0)])

    assert seen == [fused]
    assert torch.backends.cuda.flash_sdp_enabled()
