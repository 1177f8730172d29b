"""`--gradients`: what is chosen is taken and written down, and what was begun with some gradients keeps them.

Configurations, studies and facts call them `engine`.
"""

import json

import pytest
from click.testing import CliRunner

from helpers.parallel import flags, save_assistant, write_corpus
from metasearch.cli import main
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError
from metasearch.fast import FastGradients
from metasearch.jobs import compose, train
from metasearch.jobs.crossval.plan import plan
from metasearch.learners.gradients import ReferenceGradients
from metasearch.runs.folder import RunFolder
from metasearch.spec import yaml
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.library import load_recipe
from metasearch.spec.recipe import Outer, Recipe
from metasearch.spec.run import RunConfig
from metasearch.spec.stages import Distillation
from metasearch.spec.study import StudyConfig, Trained

RECIPE = Recipe(recipe="maml", description="", learner="maml", outer=Outer(lr=1e-3))
RUN = RunConfig(task="demo-sts", mode="mono-bi", encoder="tiny", recipe=RECIPE)
STAGE = {"trains": "student", "data": "parallel", "learner": "ema", "outer": {"lr": 1e-3}, "description": ""}
STAGES = DistillConfig(
    recipe=Distillation.model_validate({"recipe": "small", "description": "", "stages": {"one": STAGE}}),
    student="tiny",
    corpus=("corpus",),
)
STUDY = StudyConfig(
    task="demo", encoder="tiny", trained=(Trained(arm="maml-trans", mode="trans", recipe=RECIPE),), distilled=(STAGES,),
    folds=(0,),
)  # fmt: skip


class Stop(Exception):
    """Ends a command where it has been seen what it asks for."""


def stop_with(asked):
    """Return a function that keeps its arguments and stops."""

    def stop(*args, **kwargs):
        asked.append((args, kwargs))
        raise Stop

    return stop


def metasearch(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result


def test_gradients_are_fast_unless_the_reference_is_asked_for():
    encoder = compose.load_encoder("tiny", device="cpu")
    fast = compose.make_gradients(encoder)
    assert isinstance(fast, FastGradients)
    assert fast.encoder.encoder is encoder
    assert type(compose.make_gradients(encoder, "reference")) is ReferenceGradients


def test_unknown_gradients_are_answered_with_the_nearest_ones():
    with pytest.raises(ConfigError, match=r"unknown gradients 'refrence'\. Did you mean 'reference'\?"):
        compose.make_gradients(compose.load_encoder("tiny", device="cpu"), "refrence")


@pytest.mark.parametrize(
    ("said", "engine"),
    [
        ([], "fast"),
        (["--gradients=fast"], "fast"),
        (["--gradients=reference"], "reference"),
    ],
)
def test_train_asks_for_the_gradients_that_are_said_and_by_default_for_fast_ones(monkeypatch, said, engine):
    asked = []
    monkeypatch.setattr(train, "begin", stop_with(asked))
    metasearch("train", "--mode", "trans", *said, code=1)
    assert asked[0][0][0].engine == engine


def test_the_demo_asks_for_it_too(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(train, "begin", stop_with(asked))
    metasearch("demo", "--gradients=reference", "-o", tmp_path / "demo", code=1)
    assert asked[0][0][0].engine == "reference"


def test_every_cell_that_trains_has_the_engine_of_the_study(tmp_path):
    for engine in ("fast", "reference"):
        cells = plan(STUDY.model_copy(update={"engine": engine}), tmp_path)
        assert [cell.config.engine for cell in cells if cell.kind in ("train", "distill")] == [engine, engine]


def test_a_study_that_says_no_engine_is_planned_on_the_fast_one(tmp_path):
    assert {cell.config.engine for cell in plan(STUDY, tmp_path) if cell.kind != "score"} == {"fast"}


@pytest.mark.parametrize("config", [RUN, STAGES])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_configuration_is_read_back_with_its_engine(tmp_path, config, engine):
    RunFolder.create(tmp_path / "run", config.model_copy(update={"engine": engine}), "")
    assert RunFolder.open(tmp_path / "run", type(config))[1].config.engine == engine


@pytest.mark.parametrize("command", ["train", "distill", "crossval"])
def test_what_is_resumed_keeps_its_engine(tmp_path, command):
    error = metasearch(command, "--resume", tmp_path, "--gradients=fast", code=2).output
    assert "leave out --gradients" in error


@pytest.fixture(scope="module")
def distilled(tmp_path_factory):
    """A distillation of one stage on each engine, with something to say of the fast one, and what was said."""
    place = tmp_path_factory.mktemp("distilled")
    write_corpus(place / "corpus")
    save_assistant(place / "assistant")
    said = {}

    def noted(encoder, checkpointing):
        fast = FastGradients(encoder, checkpointing=checkpointing)
        fast.notes = ("a note",)
        return fast

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "FastGradients", noted)
        for engine in ("fast", "reference"):
            chosen = flags(place, "--stages=3", "--device=cpu", f"--gradients={engine}", steps=2)
            said[engine] = metasearch("distill", *chosen, "-o", place / engine).stderr
    return place, said


@pytest.mark.slow
def test_a_stage_takes_the_gradients_that_are_said_and_they_are_written_down(distilled):
    place, _ = distilled
    for engine in ("fast", "reference"):
        assert json.loads((place / engine / "facts.json").read_text())["engine"] == engine
        assert yaml.tree(place / engine / "config.yaml")["config"]["engine"] == engine


def test_a_stage_says_what_is_done_in_a_slower_way_and_with_the_reference_nothing(distilled):
    _, said = distilled
    assert said["fast"].count("fast gradients: a note\n") == 1
    assert "fast gradients" not in said["reference"]


def test_a_run_says_so_too_when_it_begins(monkeypatch):
    said = []
    monkeypatch.setattr(compose.log, "info", lambda text, *values: said.append(text % values))
    monkeypatch.setattr(compose, "Trainer", stop_with([]))
    benchmark, recipe = load_benchmark("demo", "trans"), load_recipe("maml-tiny")
    learner = compose.make_learner(recipe, compose.load_encoder("tiny", benchmark.task.max_length, device="cpu"))
    monkeypatch.setattr(FastGradients, "__init__", lambda self, encoder, **_: setattr(self, "notes", ("one", "two")))
    with pytest.raises(Stop):
        compose.fit(learner, benchmark, recipe)
    assert [text for text in said if "gradients" in text] == ["fast gradients: one", "fast gradients: two"]
