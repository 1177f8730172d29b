"""Recipes of several stages that ship: what is in them, by name and printed, and read back from `config.yaml`."""

import pytest

from helpers.commands import metasearch
from helpers.declarations import leaves
from helpers.stages import LIBRARY, NAMES, SMALL, written
from metasearch.config import yaml
from metasearch.config.distillation import Distillation
from metasearch.config.library import Library
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.stage import build_stage_learner


@pytest.fixture
def compress():
    return LIBRARY.distillation("compress")


def values_of(recipe):
    return leaves(recipe.model_dump(exclude={"sources", "recipe", "description"}))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_that_ships_is_whole_and_each_learner_takes_its_options(name):
    recipe = LIBRARY.distillation(name)
    for key, stage in recipe.stages.items():
        kind, options, wanted = build_stage_learner(stage, f"stage '{key}'")
        assert options.model_fields_set == set(stage.options)
        assert 1 in kind.links
        assert (wanted is None) == (stage.against is None)
    assert recipe.chosen


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
