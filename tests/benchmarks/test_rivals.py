"""The rivals of fine-tuning and MAML: what each trains, and what the table says of them."""

import pytest

from benchmarks.paper import rivals
from benchmarks.paper.rivals import RIVALS
from metasearch.config.library import Library


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
