"""Names become a study; what a study has already may grow, but does not change."""

from pathlib import Path

import pytest

from metasearch.cli.crossval import configure, parse_folds
from metasearch.config.library import Library
from metasearch.config.projection import ProjectionSettings
from metasearch.errors import ConfigError
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.resolve import merged

DEMO = Library().task("demo")


def asked(**more):
    """Return the configuration of a study, as the command line makes it."""
    flags = {
        "folder": Path("no-study"),
        "task": "demo", "learner": "maml", "recipe": None, "mode": "trans", "folds": None, "seeds": None,
        "assignments": (), "encoder": "tiny", "include": (), "data": None, "threads": None,
    }  # fmt: skip
    flags |= more
    lists = {name: tuple(flags[name].split(",")) for name in ("learner", "recipe", "mode", "seeds") if flags[name]}
    return configure(**{**flags, "learner": (), "recipe": (), "mode": (), "seeds": (), **lists})


def arms(**more):
    return [arm.arm for arm in asked(**more).trained]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, (0, 1, 2, 3, 4)),
        ("5", (0, 1, 2, 3, 4)),
        ("3", (0, 1, 2)),
        ("0,2", (0, 2)),
        ("3,", (3,)),
        ("2,0,2", (0, 2)),
    ],
)
def test_a_number_means_the_first_folds_and_a_list_names_them(written, expected):
    assert parse_folds(written, DEMO) == expected


def test_what_is_trained_has_three_seeds_and_what_is_only_scored_one(caplog):
    caplog.set_level("INFO")
    assert asked().seeds == (0, 1, 2)
    assert "seeds 0, 1, 2; --seeds 0 takes a third of the time" in caplog.text
    assert asked(learner="zero-shot").seeds == (0,)
    assert asked(seeds="4").seeds == (4,)


def test_a_study_that_is_there_keeps_its_seeds_unless_others_are_named(tmp_path):
    with StudyFolder(tmp_path).held():
        config = asked(seeds="0", folder=tmp_path)
        parts = {"data_fingerprint": "d", "versions": {}, "cells": []}
        StudyFolder(tmp_path).store(StudyMetadata(config=config, **parts))
    assert asked(folder=tmp_path).seeds == (0, 1, 2)  # it has come to nothing yet, and is configured anew
    (tmp_path / "cells" / "maml-trans" / "fold-0-seed-0" / "checkpoint").mkdir(parents=True)
    assert asked(folder=tmp_path).seeds == (0,)
    assert asked(folder=tmp_path, seeds="0,5").seeds == (0, 5)


def test_a_task_that_comes_split_has_one_fold():
    task = DEMO.model_copy(update={"folds": DEMO.folds.model_copy(update={"method": "given"})})
    assert parse_folds(None, task) == (0,)
    with pytest.raises(ConfigError, match="has one fold, 0"):
        parse_folds("5", task)


def test_each_learner_is_run_in_each_mode_that_it_fits():
    found = arms(learner="fine-tune,maml,maml-align", mode="trans,mono-bi-multi")
    assert found == [
        "fine-tune-trans", "fine-tune-mono-bi-multi", "maml-trans", "maml-mono-bi-multi", "maml-align-mono-bi-multi",
    ]  # fmt: skip


def test_a_learner_may_have_a_mode_of_its_own():
    named = asked(learner="fine-tune:mono-mono,maml,maml-align:mono-bi-multi", mode="trans", recipe="reptile:mono-bi")
    assert [(arm.arm, str(arm.mode)) for arm in named.trained] == [
        ("fine-tune-mono-mono", "mono-mono"),
        ("maml-trans", "trans"),
        ("maml-align-mono-bi-multi", "mono-bi-multi"),
        ("reptile-mono-bi", "mono-bi"),
    ]
    assert arms(learner="maml:trans", mode=None, assignments=("maml:outer.lr=1e-4",)) == ["maml-trans"]


def test_a_default_learner_that_fits_no_mode_is_left_out_and_said_so(caplog):
    with caplog.at_level("INFO"):
        assert arms(learner=None) == ["fine-tune-trans", "maml-trans"]
    assert "maml-align is skipped in mode trans, which has 2 links; it needs 3" in caplog.text
    with pytest.raises(ConfigError, match="'maml-align' needs a mode of 3 links"):
        arms(learner=None, assignments=("maml-align:outer.lr=0.5",))
    with pytest.raises(ConfigError, match="'maml-align-tiny' needs a mode of 3 links"):
        arms(learner=None, recipe="maml-align-tiny")


def test_learner_and_recipe_of_one_name_are_one_arm_unless_they_differ():
    with pytest.raises(ConfigError, match="learner and recipe 'maml' have the same name and differ"):
        arms(learner="maml", recipe="maml")


def test_values_are_put_over_all_recipes_or_one():
    config = asked(learner="fine-tune,maml", assignments=("outer.eps=1e-6", "maml:outer.lr=0.5"))
    rates = {arm.arm: (arm.recipe.outer.lr, arm.recipe.outer.eps) for arm in config.trained}
    assert rates["maml-trans"] == (0.5, 1e-6)
    assert rates["fine-tune-trans"][0] != 0.5
    assert rates["fine-tune-trans"][1] == 1e-6
    with pytest.raises(ConfigError, match=r"'mamml' is not trained in this study\. Did you mean 'maml'"):
        asked(assignments=("mamml:outer.lr=0.5",))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"mode": None}, "--mode is missing; one of bi-multi"),
        ({"learner": "maml:"}, "--learner maml:: expected a name and its mode, such as maml:trans"),
        ({"mode": "trams", "learner": "maml:trans"}, "unknown mode 'trams'. Did you mean 'trans'"),
        ({"learner": "zero-shot:trans"}, "zero-shot trains nothing and has no mode"),
        ({"learner": "zero-shot,maml", "assignments": ("zero-shot:outer.lr=3",)}, "'zero-shot' is not trained in"),
        ({"learner": "neutral:trans"}, "neutral trains nothing and has no mode"),
        ({"learner": "neutral", "assignments": ("neutral:rank=9",)}, "rank 9 is out of range, 1 to 6"),
        ({"learner": "neutral", "assignments": ("neutral:rnk=9",)}, "rnk: unknown key. Did you mean 'rank'"),
        ({"learner": "zero-shot", "assignments": ("outer.lr=3",)}, "--set outer.lr=3 changes nothing"),
        ({"seeds": "1,x"}, "--seeds: 'x' is not a seed"),
        ({"task": "tatoeba"}, "for evaluation only"),
    ],
)
def test_what_is_wrong_is_named(flags, message):
    with pytest.raises(ConfigError) as error:
        asked(**flags)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"learner": "maml:mono-bi"}, "--mode trans has no effect: every learner has its own mode"),
        ({"learner": "zero-shot"}, "--mode trans has no effect: every learner has its own mode"),
        ({"learner": "zero-shot", "mode": None, "max_steps": 3}, "--max-steps has no effect: nothing is trained"),
        ({"learner": "neutral", "mode": None, "keep_models": True}, "--keep-models has no effect: nothing is trained"),
    ],
)
def test_what_does_nothing_is_said(flags, message, caplog):
    asked(**flags)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [message]


def test_the_neutral_encoder_is_an_arm_that_a_study_may_get_later_and_then_keeps(tmp_path):
    plain, neutral = asked(), asked(learner="neutral", assignments=("neutral:rank=2",))
    assert (plain.neutral, neutral.neutral, neutral.trained) == (None, ProjectionSettings(rank=2), ())
    assert merged(plain, neutral, tmp_path).neutral == ProjectionSettings(rank=2)
    assert merged(neutral, plain, tmp_path).neutral == ProjectionSettings(rank=2)
    with pytest.raises(ConfigError, match=r"the study has neutral\.rank '2', not none"):
        merged(neutral, asked(learner="neutral"), tmp_path)


def test_a_study_grows_by_folds_seeds_and_arms(tmp_path):
    old, new = asked(folds="2", seeds="3"), asked(folds="0,4", seeds="1,3", learner="fine-tune")
    found = merged(old.model_copy(update={"threads": 2}), new, tmp_path)
    assert (found.folds, found.seeds, found.threads) == ((0, 1, 4), (3, 1), 2)
    assert [arm.arm for arm in found.trained] == ["maml-trans", "fine-tune-trans"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_steps": 3}, "the study has max_steps none, not '3'"),
        ({"encoder": "minilm"}, "the study has encoder 'tiny', not 'minilm'"),
        ({"threads": 1}, "the study has threads '2', not '1'"),
        ({"assignments": ("outer.lr=0.5",)}, "the study has maml-trans.recipe.outer.lr '0.0003', not '0.5'"),
        ({"fold_seed": 1}, "the study has fold_seed none, not '1'"),
    ],
)
def test_what_cells_share_does_not_change(tmp_path, change, message):
    old = asked().model_copy(update={"threads": 2})
    if "encoder" in change:
        change = {**change, "recipe": "maml-tiny", "learner": "zero-shot"}
    with pytest.raises(ConfigError) as error:
        merged(old, asked(**change), tmp_path)
    assert message in str(error.value)
    assert "-o" in str(error.value)
