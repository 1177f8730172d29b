"""A loss, precision or checkpointing that does not fit is refused before weights are loaded and a folder is made."""

import pytest

from helpers.configs import nested
from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.maml import MAML
from metasearch.config.base import FrozenConfig
from metasearch.config.library import load_recipe
from metasearch.config.recipe import Recipe
from metasearch.config.run import RunConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError
from metasearch.pipelines import factory
from metasearch.pipelines.train import TrainRun

JSD, DRAWN = ("loss.name=infonce", "loss.align=jsd"), "episodes.translations=true"
SEVERAL = ("loss.name=[infonce, cosine-mse]", "loss.align=jsd")


@pytest.mark.parametrize(
    ("task", "changes", "says"),
    [
        ("demo", JSD, r"the loss needs translated questions .*; use --set episodes\.translations=true$"),
        ("demo", [DRAWN], r"episodes\.translations: no loss would read them; .* --set loss\.align=jsd"),
        # The first that fits is taken, and that is one which reads none.
        ("demo", [DRAWN, "loss.name=[triplet, infonce]", JSD[1]], r"episodes\.translations: no loss would read them"),
        ("demo-sts", [DRAWN], r"episodes\.translations is about .* has scored pairs; .*=false leaves it out$"),
        ("demo-sts", SEVERAL, r"loss\.align is about .* has scored pairs; --set loss\.align=none leaves it out$"),
    ],
)
def test_translations_and_a_loss_that_reads_them_go_together(tmp_path, task, changes, says):
    recipe = load_recipe("maml-tiny", changes)
    config = nested(RunConfig, task=task, mode="mono-bi", encoder="tiny", recipe=recipe)
    with pytest.raises(ConfigError, match=f"recipe 'maml-tiny': {says}"):
        TrainRun(config, tmp_path / "run").execute()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("task", "loss", "fit"), [("demo", "cosine-mse", "infonce, triplet"), ("demo-sts", "infonce", "cosine-mse")]
)
def test_a_loss_of_other_examples_is_refused_before_anything_is_written(tmp_path, task, loss, fit):
    recipe = load_recipe("maml-tiny", [f"loss.name={loss}"])
    config = nested(RunConfig, task=task, mode="mono-bi", encoder="tiny", recipe=recipe)
    with pytest.raises(ConfigError, match=f"Losses that fit: {fit}$"):
        TrainRun(config, tmp_path / "run").execute()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("align", "sizes", "said"), [("infonce", (8, 3), "q"), ("infonce", (4, 4), ""), ("jsd", (3, 3), "")]
)
def test_translations_that_are_alone_in_their_set_are_said_to_teach_nothing(caplog, align, sizes, said):
    k, q = sizes
    changes = [DRAWN, JSD[0], f"loss.align={align}", "episodes.n_neg=3", f"episodes.k={k}", f"episodes.q={q}"]
    factory.check_fit(load_recipe("maml-tiny", changes), load_benchmark("demo", "mono-bi"), "float32")
    # One candidate language, three triplets a question: a fourth triplet is of a second question.
    assert [f"episodes.{said}={q}" in message for message in caplog.messages] == [True] * bool(said)


@pytest.mark.parametrize(
    ("learner", "assignment", "said"),
    [
        ("maml-align", "options.distil=scores", r"options\.distil: .* went; the paper's term is the one"),
        ("maml-align", "options.kd_share=0.3", "went; use kd_weight"),
        ("meta-sgd", "options.inner_fall=0.1", "went; use inner_lr"),
        (
            "maml-adapter",
            "adapter=low-rank",
            "the one form of adapters is matrix; low-rank, rotation and scale .* went",
        ),
        ("maml-adapter", "adapter.rank=8", "adapter: the one form of adapters is matrix"),
    ],
)
def test_an_option_that_went_is_refused(learner, assignment, said):
    with pytest.raises(ConfigError, match=said):
        load_recipe(learner, [assignment])


def test_options_that_went_count_in_a_recipe_of_an_earlier_version_where_they_changed_something():
    stored = load_recipe("maml-align", ()).model_dump()
    earlier = {"distil": "loss-gap", "kd_temperature": "0.05", "kd_share": None, "inner_fall": None}
    assert Recipe.model_validate({**stored, "options": stored["options"] | earlier}) == Recipe.model_validate(stored)
    assert load_recipe("maml-adapter", ["adapter.form=matrix", "adapter.rank=16"]).adapter == "matrix"


# What only first order has is refused for a learner whose gradient goes through its inner steps.

RECIPE = load_recipe("maml-tiny", ()).model_copy(update={"options": {}})


SECOND_ORDER = type("SecondOrder", (MAML,), {"Options": FrozenConfig})
NO_INNER_GRADIENTS = type("NoInnerGradients", (FineTune,), {"Options": FrozenConfig})
"""Learners that know one order, so without an option `first_order`."""


def check(monkeypatch, learner, *how, options=None):
    monkeypatch.setattr(factory, "learner_class", lambda recipe: learner)
    recipe = RECIPE.model_copy(update={"options": options or {}})
    factory.check_fit(recipe, load_benchmark("demo", "mono-bi"), *how)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (("bfloat16",), "--precision bfloat16 needs first order; use float32"),
        (("float32", "gradcache"), "--checkpointing gradcache has no effect in second order; use layers"),
    ],
)
def test_it_is_named_what_to_use_and_the_option_where_there_is_one(monkeypatch, how, says):
    with pytest.raises(ConfigError, match=rf"^{says}$"):
        check(monkeypatch, SECOND_ORDER, *how)
    with pytest.raises(ConfigError, match=rf"^{says}, or --set options\.first_order=true$"):
        check(monkeypatch, MAML, *how, options={"first_order": False})
    check(monkeypatch, MAML, *how)
    check(monkeypatch, NO_INNER_GRADIENTS, *how)
