"""What only first order has is refused for a learner whose gradient goes through its inner steps."""

import pytest

from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.maml import MAML
from metasearch.config.base import FrozenConfig
from metasearch.config.library import load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError
from metasearch.pipelines import compatibility

RECIPE = load_recipe("maml-tiny", ()).model_copy(update={"options": {}})


class Plain(FrozenConfig):
    """Options of a learner that knows one order."""


class SecondOrder(MAML):
    """A learner without an option `first_order`."""

    Options = Plain


class NoInnerGradients(FineTune):
    """Another one, which says that it has no inner gradients."""

    Options = Plain


def check(monkeypatch, learner, *how, options=None):
    monkeypatch.setattr(compatibility, "learner_class", lambda recipe: learner)
    recipe = RECIPE.model_copy(update={"options": options or {}})
    compatibility.check_fit(recipe, load_benchmark("demo", "mono-bi"), *how)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (("bf16",), "--precision bf16 needs first order; use fp32"),
        (("fp32", "gradcache"), "--checkpointing gradcache has no effect in second order; use layers"),
    ],
)
def test_it_is_named_what_to_use_and_the_option_where_there_is_one(monkeypatch, how, says):
    with pytest.raises(ConfigError, match=rf"^{says}$"):
        check(monkeypatch, SecondOrder, *how)
    with pytest.raises(ConfigError, match=rf"^{says}, or --set options\.first_order=true$"):
        check(monkeypatch, MAML, *how, options={"first_order": False})
    check(monkeypatch, MAML, *how)
    check(monkeypatch, NoInnerGradients, *how)
