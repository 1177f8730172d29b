"""Recipes of several stages that ship: what is in them, by name and printed, and read back from `config.yaml`."""

import re

import pytest

from helpers.commands import metasearch
from helpers.declarations import leaves
from helpers.stages import LIBRARY, NAMES, SMALL, written
from metasearch.config import yaml
from metasearch.config.distillation import Distillation
from metasearch.config.library import Library, shipped
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.stage import build_stage_learner


@pytest.fixture
def compress():
    return LIBRARY.distillation("compress")


def values_of(recipe):
    return leaves(recipe.model_dump(exclude={"sources", "recipe", "description"}))


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


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_that_ships_is_whole_and_each_learner_takes_its_options(name):
    recipe = LIBRARY.distillation(name)
    for key, stage in recipe.stages.items():
        kind, options, wanted = build_stage_learner(stage, f"stage '{key}'")
        assert options.model_fields_set == set(stage.options)
        assert 1 in kind.links
        assert (wanted is None) == (stage.against is None)
    assert recipe.chosen


@pytest.mark.parametrize("name", NAMES)
def test_a_source_belongs_to_a_value_of_the_recipe(name):
    recipe = LIBRARY.distillation(name)
    keys = list(values_of(recipe))
    keys += [".".join(["stages", *key.split(".")[2:]]) for key in keys if key.startswith("stages.")]
    written = [key for key in recipe.sources if key != "recipe"]
    assert [one for one in written if not any(key == one or key.startswith(f"{one}.") for key in keys)] == []
    assert all(recipe.sources.values())


def base_of(name):
    text = (shipped() / "distillation" / f"{name}.yaml").read_text(encoding="utf-8")
    match = re.search("^include: (.+)$", text, re.MULTILINE)
    return match and match[1]


@pytest.mark.parametrize("name", [name for name in NAMES if base_of(name)])
def test_a_value_that_a_recipe_changes_is_not_credited_to_the_source_of_the_old_one(name):
    recipe, base = LIBRARY.distillation(name), LIBRARY.distillation(base_of(name))
    old, new = values_of(base), values_of(recipe)
    changed = [key for key in new if new[key] != old.get(key) and not key.endswith(".description")]
    assert changed
    assert [key for key in changed if said_of(base, key) and said_of(recipe, key) == said_of(base, key)] == []


@pytest.mark.parametrize(
    ("name", "trains", "against", "options"),
    [
        ("assistant", "assistant", "teacher", {"output": "pooled", "target": "source"}),
        ("embedding", "student", "assistant", {"output": "embedding", "target": "own"}),
        ("student", "student", "assistant", {"output": "pooled", "target": "own"}),
        ("contrast", "student", "teacher", {"output": "pooled", "target": "source", "contrast": "soft"}),
    ],
)
def test_the_four_stages_are_those_of_the_paper(compress, name, trains, against, options):
    """Section 3.2: who learns from whom, and equations 2, 3, 4 and 7."""
    stage = compress.stages[name]
    assert (stage.trains, stage.against) == (trains, against)
    assert stage.options.items() >= options.items()
    assert (stage.outer.lr, stage.outer.warmup, stage.budget.batch) == (2e-5, 0.1, 64)
    assert stage.budget.epochs == (60 if name == "contrast" else 20)


@pytest.mark.parametrize(
    ("name", "contrast", "repeats"),
    [
        ("compress-paper", "soft", None),
        ("compress-single-stage", "none", None),
        ("compress-pre-distilled", "none", None),
        ("compress-without-mcl", "none", None),
        ("compress-without-recurrence", "soft", 1),
        ("compress-without-both", "none", 1),
    ],
)
def test_an_ablation_leaves_out_what_it_is_named_after_and_nothing_else(name, contrast, repeats):
    recipe = LIBRARY.distillation(name)
    assert (recipe.stages["contrast"].options["contrast"], recipe.student.repeats) == (contrast, repeats)
    new, old = values_of(recipe), values_of(LIBRARY.distillation("compress-paper"))
    allowed = {"run", "student.repeats", "stages.contrast.options.contrast"}
    assert {key for key in new if new[key] != old[key]} <= allowed


# By name, and printed.


def test_recipes_of_ones_own_stand_beside_those_that_ship(tmp_path):
    folder = written(tmp_path)
    library = Library([folder])
    assert library.names("distillation") == sorted([*NAMES, "small"])
    assert list(library.distillation("small").stages) == ["first", "second"]
    written(tmp_path, SMALL, "other")
    with pytest.raises(ConfigError, match="distillation: 'small' must be the file's name, 'other'"):
        Library([folder]).distillation("other")
    written(tmp_path, SMALL, "compress")
    with pytest.raises(ConfigError, match="distillation 'compress' is declared already in"):
        Library([folder])


def test_what_show_prints_is_the_recipe(write):
    shown = metasearch("show", "compress").stdout
    assert yaml.read(write(shown), Distillation) == LIBRARY.distillation("compress")
