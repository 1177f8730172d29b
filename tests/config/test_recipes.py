"""The hyper-parameters that ship: of the MAML-Align paper (appendix C.3), of its code, and ours, each with a source."""

import re

import pytest

from helpers.declarations import leaves, values_of
from metasearch.config.library import Library, load_recipe, overrides, shipped
from metasearch.config.recipe import SET
from metasearch.errors import ConfigError
from metasearch.runs.versions import describe

LIBRARY = Library()
NAMES = LIBRARY.names("recipe")
DERIVED = [name for name in NAMES if name.endswith(("-tiny", "-authors")) and name.rsplit("-", 1)[0] in NAMES]


def said_of(recipe, key):
    """Return the source of the longest key that leads to a value; of two as long, that which names the stage.

    A key below `stages` may leave out the name of the stage: it is that of all stages.
    """
    parts = key.split(".")
    prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    if parts[0] == "stages":
        rest = [".".join(["stages", *parts[2:n]]) for n in range(len(parts), 2, -1)]
        prefixes = [one for pair in zip(prefixes, rest, strict=False) for one in pair] + prefixes[len(rest) :]
    return next((recipe.sources[prefix] for prefix in prefixes if prefix in recipe.sources), None)


EPISODES = {"episodes.k": 8, "episodes.q": 4, "episodes.n_neg": 3}
C3 = {
    **{**EPISODES, "episodes.queries": "random", "episodes.negatives": "random"},
    **{"budget.meta_train": 7000, "budget.meta_valid": 2000, "budget.meta_batch": 4, "budget.epochs": 20},
    **{"budget.patience": 50, "outer.lr": 1e-5, "outer.eps": 1e-8, "outer.weight_decay": 0},
    **{"loss.margin": 1, "loss.distance": "euclidean", "dropout": False},
    **{"options.inner_lr": "1e-3", "options.inner_steps": "5"},
}
CODE = {
    **{"episodes.k": 3, "episodes.q": 3, "episodes.n_neg": 1, "episodes.queries": "similar"},
    **{"outer.lr": 5e-5, "budget.epochs": 1, "budget.patience": 0},
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("maml", C3),
        ("maml-align", {**C3, "options.student_inner_steps": "1", "options.kd_weight": "0.5"}),
        ("fine-tune", {**EPISODES, "outer.lr": 5e-5, "outer.eps": 1e-8}),
        ("maml-authors", CODE),
        ("maml-align-authors", CODE),
    ],
)
def test_a_preset_has_the_values_of_appendix_c3_or_of_the_authors_code(name, expected):
    found = leaves(LIBRARY.recipe(name).model_dump())
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "train", "valid"), [("maml", 49, 14), ("maml-align", 1, 1), ("fine-tune", 16 * 49, 16 * 14)]
)
def test_the_authors_preset_takes_the_outer_steps_of_their_loop(name, train, valid):
    budget = LIBRARY.recipe(f"{name}-authors").budget
    assert (budget.meta_train, budget.meta_valid) == (train * budget.meta_batch, valid * budget.meta_batch)


def test_a_source_belongs_to_a_value_of_the_recipe():
    for recipe in [*map(LIBRARY.recipe, NAMES), *map(LIBRARY.distillation, LIBRARY.names("distillation"))]:
        keys = list(leaves(recipe.model_dump(exclude={"sources"})))
        keys += [".".join(["stages", *key.split(".")[2:]]) for key in keys if key.startswith("stages.")]
        for written in recipe.sources:
            assert any(key == written or key.startswith(f"{written}.") for key in keys), (recipe.recipe, written)


def derived():
    """Yield each recipe that is made from another one, and that one."""
    for name in DERIVED:
        yield LIBRARY.recipe(name), LIBRARY.recipe(name.rsplit("-", 1)[0])
    for name in LIBRARY.names("distillation"):
        text = (shipped() / "distillation" / f"{name}.yaml").read_text(encoding="utf-8")
        if base := re.search("^include: (.+)$", text, re.MULTILINE):
            yield LIBRARY.distillation(name), LIBRARY.distillation(base[1])


@pytest.mark.parametrize(("recipe", "base"), list(derived()), ids=lambda recipe: recipe.recipe)
def test_a_value_that_a_recipe_changes_is_not_credited_to_the_source_of_the_old_one(recipe, base):
    old, new = values_of(base), values_of(recipe)
    changed = [key for key in new if new[key] != old.get(key) and not key.endswith(".description")]
    assert [key for key in changed if said_of(base, key) and said_of(recipe, key) == said_of(base, key)] == []


@pytest.mark.parametrize(
    ("learner", "encoder", "expected"),
    [
        ("maml", "tiny", "maml-tiny"),
        ("maml", "minilm", "maml"),
        ("maml", "mini-e5", "maml-mini"),
        ("maml", "tiny-of-mine", "maml"),
        ("maml-align", "some/checkpoint", "maml-align"),
    ],
)
def test_a_learner_takes_the_recipe_that_is_tuned_to_the_encoder_where_there_is_one(learner, encoder, expected):
    assert LIBRARY.recipe_for(learner, encoder) == expected


def test_set_puts_values_over_a_recipe_and_leaves_the_rest():
    recipe = LIBRARY.recipe("maml-align", overrides(["outer.lr=1e-4", "options.kd_weight=0.25", "dropout=true"]))
    assert (recipe.outer.lr, recipe.outer.eps) == (1 / 10_000, 1e-8)
    assert float(recipe.options["kd_weight"]) == 1 / 4
    assert float(recipe.options["inner_lr"]) == 1 / 1000
    assert recipe.dropout is True


@pytest.mark.parametrize(
    ("key", "whole"),
    [("inner_steps", "options.inner_steps"), ("lr", "outer.lr"), ("k", "episodes.k"), ("epochs", "budget.epochs")],
)
def test_a_key_without_its_section_is_an_error_that_names_the_section(key, whole):
    with pytest.raises(ConfigError, match=rf"--set {key}: unknown key\. Did you mean '{whole}'\?"):
        load_recipe("maml-tiny", [f"{key}=5"])


def test_values_that_a_user_sets_are_named_by_their_source_and_in_the_facts_of_a_run():
    recipe = load_recipe("maml-tiny", ["options.inner_steps=2", "outer.lr=1e-4"])
    own = {key for key, source in recipe.sources.items() if source == SET}
    assert own == {"options.inner_steps", "outer.lr"}
    assert describe({"recipe": recipe.model_dump()}, ())["set"] == "outer.lr=0.0001, options.inner_steps=2"
    assert "set" not in describe({"recipe": load_recipe("maml-tiny").model_dump()}, ())
