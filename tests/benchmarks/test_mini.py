"""The build of metasearch-mini: its recipes, the steps, and the model card."""

import pytest

from benchmarks.mini import assistants
from helpers.mini import MINI
from metasearch.config.library import load_distillation


@pytest.mark.parametrize("name", [*assistants.RECIPES.values(), assistants.STATES])
def test_the_recipe_is_sound_and_its_stages_read_what_the_build_writes(name):
    recipe = load_distillation(name, include=[str(MINI)])
    assert recipe.student is None or recipe.student.bottleneck
    assert {name for stage in recipe.stages.values() for name in stage.corpus.only} <= {"corpus", "joined"}
    assert recipe.stages[recipe.chosen[-1]].trains == "student"
