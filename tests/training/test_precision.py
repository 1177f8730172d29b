"""Dev scores have the precision of the run."""

import pytest

from helpers.training import small
from metasearch.config.library import Library
from metasearch.encoders.load import load_encoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines import factory
from metasearch.pipelines.factory import fit, make_learner


@pytest.mark.slow
def test_dev_scores_while_training_have_the_precision_of_the_run(monkeypatch):
    settings = ["episodes.k=2", "episodes.q=2", "options.inner_steps=1", "budget.meta_valid=0", "budget.eval_every=0"]
    benchmark, recipe = (
        small("mono-bi"),
        Library().choose_recipe("mono-bi", "tiny", "fine-tune", None, settings[:2] + settings[3:]),
    )
    learner, asked = make_learner(recipe, load_encoder("tiny", device="cpu")), []
    monkeypatch.setattr(
        factory, "evaluate", lambda *args, **keys: asked.append(keys["precision"]) or evaluate(*args, **keys)
    )

    fit(learner, benchmark, recipe, max_steps=1, precision="bfloat16")

    assert asked == ["bfloat16"] * 2  # before and after the step
