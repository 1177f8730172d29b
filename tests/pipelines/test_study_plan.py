"""The cells of a study: which there are, and in which order."""

import pytest
from pydantic import ValidationError

from helpers.configs import nested
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Distillation
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import Outer, Recipe
from metasearch.config.run import RunConfig, ScoreConfig, flat
from metasearch.config.study import StudyConfig, TrainedArm
from metasearch.pipelines.study.plan import plan
from metasearch.pipelines.study.status import StatusBoard

RECIPE = Recipe(recipe="maml", description="", learner="maml", outer=Outer(lr=1e-3))
STAGES = {
    "one": {
        "trains": "student", "against": "teacher", "data": "parallel", "learner": "distill", "outer": {"lr": 1e-3},
        "description": "",
    }
}  # fmt: skip


def study(**more):
    """Return a study of one arm in one mode."""
    trained = (TrainedArm(arm="maml-trans", mode="trans", recipe=RECIPE),)
    return nested(
        StudyConfig, **{"task": "demo", "encoder": "tiny", "trained": trained, "folds": (0, 1), "seeds": (4, 5), **more}
    )


def distillation():
    recipe = Distillation.model_validate({"recipe": "small", "description": "", "stages": STAGES})
    return nested(DistillConfig, recipe=recipe, teacher="tiny", student="tiny", corpus=("corpus",))


def named(cells):
    return {cell.name: cell for cell in cells}


def test_there_is_a_cell_for_every_arm_fold_and_seed_zero_shot_first(tmp_path):
    assert [cell.name for cell in plan(study(), tmp_path)] == [
        f"{arm}/fold-{fold}-seed-{seed}" for arm in ("zero-shot", "maml-trans") for seed in (4, 5) for fold in (0, 1)
    ]


def test_the_neutral_encoder_is_scored_after_zero_shot(tmp_path):
    settings = NeutralSettings(rank=2)
    cells = plan(study(neutral=settings), tmp_path)
    assert [cell.arm for cell in cells] == [arm for arm in ("zero-shot", "neutral", "maml-trans") for _ in range(4)]
    cell = named(cells)["neutral/fold-1-seed-4"]
    settings = nested(ScoreConfig, task="demo", encoder="tiny", label="neutral", neutralise=settings, fold=1, seed=4)
    assert (cell.kind, cell.runs) == ("score", {cell.name: settings})


def test_a_distillation_and_the_scores_of_its_student_on_each_fold_are_one_cell_a_seed(tmp_path):
    cells = plan(study(trained=(), distilled=(distillation(),)), tmp_path)
    made = [cell for cell in cells if cell.kind == "distill"]
    assert [(cell.name, cell.runs[cell.name].seed) for cell in made] == [("small/seed-4", 4), ("small/seed-5", 5)]
    assert [*made[1].runs] == ["small/seed-5", "small/fold-0-seed-5", "small/fold-1-seed-5"]
    model = str(tmp_path.resolve() / "cells" / "small" / "seed-5" / "model")
    expected = nested(ScoreConfig, task="demo", encoder=model, label="small", fold=1, seed=5)
    assert made[1].runs["small/fold-1-seed-5"] == expected


def test_what_the_cells_share_comes_from_the_study(tmp_path):
    shared = {"task": "demo", "encoder": "tiny", "fold_seed": 7, "device": "cpu", "data": "/data"}
    config = study(**shared, max_steps=3, precision="bf16", include=(str(tmp_path),))
    for cell in plan(config, tmp_path):
        settings = flat(cell.runs[cell.name].model_dump())
        assert {key: settings[key] for key in shared} == shared
        assert settings["include"] == (str(tmp_path),)
    run = named(plan(config, tmp_path))["maml-trans/fold-0-seed-4"].runs["maml-trans/fold-0-seed-4"]
    assert isinstance(run, RunConfig)
    assert (run.max_steps, run.compute.precision, str(run.mode), run.recipe) == (3, "bf16", "trans", RECIPE)


def test_two_arms_cannot_have_one_name():
    arm = TrainedArm(arm="zero-shot", mode="trans", recipe=RECIPE)
    with pytest.raises(ValidationError, match="two arms are called 'zero-shot'"):
        study(trained=(arm,))


def test_the_time_left_is_the_mean_of_the_arm_or_else_of_the_kind_shared_by_the_cells_at_work(tmp_path):
    cells = plan(study(folds=(0, 1, 2), seeds=(4,)), tmp_path)
    found = StatusBoard.of(cells, ["zero-shot/fold-0-seed-4"])
    # Nothing took any time in this call yet: one cell was done before it.
    assert found.seconds_left is None
    for fold, seconds in ((1, 10.0), (2, 20.0)):
        status = found.cells[f"zero-shot/fold-{fold}-seed-4"]
        status.state, status.seconds = "done", seconds
    # Three cells are to be trained, and no trained one is done.
    assert found.seconds_left is None
    first, second, third = (found.cells[f"maml-trans/fold-{fold}-seed-4"] for fold in range(3))
    first.state, first.seconds = "done", 100.0
    assert found.seconds_left == 2 * 100
    second.state = third.state = "queued"
    assert found.seconds_left == 2 * 100 / 2
    second.state, third.state = "done", "failed"
    assert found.seconds_left == 0
