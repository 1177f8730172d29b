"""The cells of a study: which there are, and in which order."""

from helpers.configs import nested
from metasearch.config.library import Library
from metasearch.config.projection import ProjectionSettings
from metasearch.config.recipe import Outer, Recipe
from metasearch.config.run import RunConfig, ScoreConfig, flat
from metasearch.config.study import StudyConfig, TrainedArm
from metasearch.pipelines.study.runner import plan

RECIPE = Recipe(recipe="maml", description="", learner="maml", outer=Outer(lr=1e-3))


def study(**more):
    """Return a study of one arm in one mode."""
    trained = (TrainedArm(arm="maml-trans", mode=Library().mode("trans"), recipe=RECIPE),)
    return nested(
        StudyConfig, **{"task": "demo", "encoder": "tiny", "trained": trained, "folds": (0, 1), "seeds": (4, 5), **more}
    )


def named(cells):
    return {cell.name: cell for cell in cells}


def test_there_is_a_cell_for_every_arm_fold_and_seed_zero_shot_first():
    assert [cell.name for cell in plan(study())] == [
        f"{arm}/fold-{fold}-seed-{seed}" for arm in ("zero-shot", "maml-trans") for seed in (4, 5) for fold in (0, 1)
    ]


def test_the_neutral_encoder_is_scored_after_zero_shot():
    settings = ProjectionSettings(rank=2)
    cells = plan(study(neutral=settings))
    assert [cell.name.partition("/")[0] for cell in cells] == [
        arm for arm in ("zero-shot", "neutral", "maml-trans") for _ in range(4)
    ]
    cell = named(cells)["neutral/fold-1-seed-4"]
    settings = nested(ScoreConfig, task="demo", encoder="tiny", label="neutral", neutralise=settings, fold=1, seed=4)
    assert cell.config == settings


def test_what_the_cells_share_comes_from_the_study(tmp_path):
    shared = {"task": "demo", "encoder": "tiny", "fold_seed": 7, "device": "cpu", "data": "/data"}
    config = study(**shared, max_steps=3, precision="bf16", include=(str(tmp_path),))
    for cell in plan(config):
        settings = flat(cell.config.model_dump())
        assert {key: settings[key] for key in shared} == shared
        assert settings["include"] == (str(tmp_path),)
    run = named(plan(config))["maml-trans/fold-0-seed-4"].config
    assert isinstance(run, RunConfig)
    assert (run.max_steps, run.compute.precision, str(run.mode), run.recipe) == (3, "bfloat16", "trans", RECIPE)
