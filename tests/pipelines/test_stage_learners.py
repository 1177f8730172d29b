"""The learner of a stage: its options, the targets that it wants, and the data that it reads."""

import pytest

from metasearch.algorithms.base import TargetSpec
from metasearch.algorithms.distill import Distill
from metasearch.algorithms.ema import EMA
from metasearch.config.distillation import Stage
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.stage import build_stage_learner


def stage(**changed):
    tree = {"description": "d", "trains": "student", "against": "teacher", "learner": "distill", "outer": {"lr": "1"}}
    return Stage.model_validate({key: value for key, value in {**tree, **changed}.items() if value is not None})


def test_the_learner_its_options_and_the_targets_it_wants_are_known_before_weights_are_loaded():
    kind, options, wanted = build_stage_learner(stage(options={"output": "embedding", "target": "own"}), "here")
    assert kind is Distill
    assert (options.output, options.target, options.contrast_weight) == ("embedding", "own", 1)
    assert wanted == TargetSpec("embedding", translations=True)
    kind, options, wanted = build_stage_learner(stage(learner="ema", against=None, options={"tau": "0.5"}), "here")
    assert (kind, options.tau, wanted) == (EMA, 0.5, None)


SCORED = {"learner": "maml", "data": "scored", "monitor": "loss", "against": None}
STATES = {"options": {"output": "states", "target": "own"}}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"learner": "distil"}, "unknown learner 'distil'. Did you mean 'distill'?"),
        ({"learner": "maml"}, "here: learner 'maml' learns from episodes; use `metasearch train`"),
        (SCORED, "here: learner 'maml' learns from episodes; use `metasearch train`"),
        ({"options": {"temprature": "1"}}, "here: options: temprature: unknown key. Did you mean 'temperature'?"),
        ({"options": {"temperature": "0"}}, "here: options: temperature: input should be greater than 0 (got '0')"),
        ({"options": {"output": "states"}}, "options.output: states of a translation have no counterpart"),
        ({"against": None}, "here: learner 'distill' needs a frozen role to learn from, under `against`"),
        ({"learner": "ema"}, "here: learner 'ema' takes no targets; omit `against`"),
        (
            {**STATES, "monitor": "cosine"},
            "here: monitor: cosine is between vectors of texts; options.output is states",
        ),
    ],
)
def test_a_learner_that_does_not_fit_its_stage_is_refused(changed, says):
    with pytest.raises(ConfigError) as caught:
        build_stage_learner(stage(**changed), "here")
    assert str(caught.value).startswith(says)
