"""Recipes of several stages: which stages run, which encoders they need, and those that ship."""

import pytest

from helpers.commands import metasearch
from helpers.configs import nested
from helpers.declarations import values_of
from helpers.stages import LIBRARY, NAMES, SMALL, STAGES, written
from metasearch.config import yaml
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Distillation
from metasearch.config.library import Library
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.distill.stage import build_stage_learner


@pytest.fixture
def compress():
    return LIBRARY.distillation("compress")


@pytest.mark.parametrize(
    ("written", "chosen"),
    [
        ("3", STAGES[2:3]),
        ("2-4", STAGES[1:4]),
        ("1,3", (STAGES[0], STAGES[2])),
        ("3,1", (STAGES[0], STAGES[2])),
        (" 1 , 3-4 ", (STAGES[0], STAGES[2], STAGES[3])),
        ("1-3,2-3", STAGES[:3]),
        ("student,contrast", STAGES[2:]),
        ("assistant,4,", (STAGES[0], STAGES[3])),
    ],
)
def test_a_part_of_the_stages_is_run_in_their_order(compress, written, chosen):
    part = compress.only(written)
    assert part.chosen == part.run == chosen
    assert part.stages == compress.stages


@pytest.mark.parametrize(
    ("stages", "student_given", "roles"),
    [
        ("1-4", False, ("teacher", "assistant")),
        ("1", False, ("teacher", "assistant")),
        ("2", False, ("assistant",)),
        ("2-3", True, ("assistant",)),
        ("4", False, ("teacher", "assistant")),  # of which the student is made
        ("4", True, ("teacher",)),
    ],
)
def test_the_encoders_that_must_be_given_are_those_of_the_chosen_stages(compress, stages, student_given, roles):
    assert compress.only(stages).roles(student_given) == roles


def test_what_a_stage_made_of_drawn_weights_is_still_of_that_seed_when_a_run_goes_on(compress, tmp_path):
    config = nested(DistillConfig, recipe=compress, teacher="tiny", assistant="tiny")
    load_encoder("tiny", device="cpu").save(tmp_path)
    goes_on = RoleEncoders(config, {"assistant": "its fingerprint"})
    goes_on.take("assistant", tmp_path)
    at_once = RoleEncoders(config)
    at_once.at("assistant")
    at_once.take("assistant", tmp_path)
    assert goes_on.at("assistant").seeded
    assert at_once.at("assistant").seeded
    given = RoleEncoders(nested(DistillConfig, recipe=compress, teacher="tiny", assistant=str(tmp_path)))
    given.take("assistant", tmp_path)
    assert not given.at("assistant").seeded


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
