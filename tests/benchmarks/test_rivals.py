"""The recipes of benchmarks: rivals of MAML, the curve over labels, and the stages of metasearch-mini."""

from pathlib import Path

import pytest

from benchmarks.mini import assistants
from benchmarks.paper import labels, rivals
from benchmarks.paper.rivals import RIVALS
from metasearch.config.library import Library, load_distillation


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_changes_one_respect_of_a_recipe_of_e5(name, tmp_path):
    rival = RIVALS[name]
    recipe = Library([tmp_path / "tasks"]) if rivals.declare(tmp_path, name) else None
    recipe = recipe.recipe(f"rival-{name}")
    # 16 outer steps of two episodes, with 16 examples in a set, through a map.
    budget = recipe.budget
    assert (budget.meta_train + budget.meta_valid) / budget.meta_batch == 16
    assert (recipe.episodes.k, recipe.episodes.q, recipe.neutralise.when) == (16, 16, "before")
    base = Library().recipe(rival.recipe)
    fields = ("learner", "loss", "outer", "options", "dropout", "labels", "translate")
    changed = {key.partition("=")[0].partition(".")[0] for key in rival.settings}
    assert all(getattr(recipe, key) == getattr(base, key) for key in fields if key not in changed)
    assert changed, "a rival that changes nothing"


def test_sets_are_as_large_as_the_labels_and_no_label_of_dev_is_read(tmp_path):
    names = [labels.declare(tmp_path, count, start) for start in ("aligned", "neutral") for count in (8, 128)]
    assert names == ["best-aligned-8", "best-aligned-128", "best-neutral-8", "best-neutral-128"]
    few, many, *through = [Library([tmp_path / "tasks"]).recipe(name) for name in names]
    assert [(each.labels, each.episodes.k, each.episodes.q) for each in (few, many)] == [(8, 8, 8), (128, 64, 64)]
    assert all(each.budget.meta_valid == 0 for each in (few, many, *through))
    assert [each.neutralise and each.neutralise.when for each in (few, *through)] == [None, "before", "before"]
    # All else is as in the recipe.
    best = Library().recipe("best")
    assert (few.loss, few.outer, few.episodes.negatives) == (best.loss, best.outer, best.episodes.negatives)


@pytest.mark.parametrize("name", [*assistants.RECIPES.values(), assistants.STATES])
def test_the_recipe_is_sound_and_its_stages_read_what_the_build_writes(name):
    recipe = load_distillation(name, include=[str(Path(assistants.__file__).parent)])
    assert recipe.student is None or recipe.student.bottleneck
    assert {name for stage in recipe.stages.values() for name in stage.corpus.only} <= {"corpus", "joined"}
    assert recipe.stages[recipe.chosen[-1]].trains == "student"
