"""`metasearch replay RUN --step N`: the step that the run took, alone, to the same bits; and nothing is written."""

import json
import re
import shutil

import pytest
import torch
from click.testing import CliRunner

from helpers.crossval import TUNED, ZERO, inline
from helpers.crossval import run as crossval
from metasearch.cli import main
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import NonFiniteError
from metasearch.jobs import compose, train
from metasearch.jobs.resume import resume_run
from metasearch.learners.base import OuterLoss
from metasearch.learners.gradients import ReferenceGradients
from metasearch.runs.folder import RunFolder
from metasearch.runs.listener import Listener
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.library import load_distillation, load_recipe
from metasearch.spec.run import RunConfig

SMALL = [f"budget.{key}" for key in ("meta_train=12", "meta_valid=4", "meta_batch=4", "eval_every=1", "patience=0")]
SMALL += ["episodes.k=2", "episodes.q=2", "options.inner_steps=1", "outer.warmup=0.5"]
STEPS = 12 // 4 + 4 // 4


def metasearch(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def configured(recipe="maml-align-tiny", mode="mono-bi-multi", changes=(), **more):
    chosen = compose.resolved(load_recipe(recipe, [*SMALL, *changes]))
    return RunConfig(**{"task": "demo", "mode": mode, "encoder": "tiny", "recipe": chosen, "device": "cpu", **more})


def replayed(folder, step, *args, code=0):
    return json.loads(metasearch("replay", folder, "--step", step, "--json", *args, code=code).stdout)


def files_of(folder):
    return {p.relative_to(folder): (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


class StoppedAt(Listener):
    """Stands for Ctrl-C, or for a crash, after an outer step."""

    def __init__(self, step, error):
        self.step, self.error = step, error

    def on_step(self, step, total, phase, terms):
        if step == self.step:
            raise self.error


class Crash(Exception):
    """Stands for a machine that stops."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a finished run for each kind of gradients."""
    place = tmp_path_factory.mktemp("replay")
    for engine in ("fast", "reference"):
        train.begin(configured(engine=engine), place / engine)
    return place


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """Return a run that crashed after step 3, before its dev score: it has checkpoints of the steps 1 and 2."""
    folder = tmp_path_factory.mktemp("replay") / "a run"
    with pytest.raises(Crash):
        train.begin(configured(), folder, StoppedAt(3, Crash()))
    assert {path.name for path in folder.glob("checkpoint*")} == {"checkpoint", "checkpoint.previous"}
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_every_step_of_a_finished_run_is_that_of_its_log(finished, engine, step):
    before = files_of(finished / engine)
    found = replayed(finished / engine, step)
    (event,) = [event for event in RunFolder(finished / engine).events() if event["step"] == step and "loss" in event]
    (taken,) = found["taken"]
    assert {"step": step, "total": STEPS, "phase": found["phase"], **taken["terms"]} == event
    assert "lr" in taken["terms"]
    assert (taken["gradients"], taken["differs"], taken["unfinite"], found["from"]) == (engine, {}, [], 0)
    assert files_of(finished / engine) == before


@pytest.mark.slow
@pytest.mark.parametrize(("step", "checkpoint"), [(1, 0), (2, 1), (3, 2)])
def test_an_unfinished_run_goes_from_the_newest_checkpoint_before_the_step(crashed, step, checkpoint):
    before = files_of(crashed)
    found = replayed(crashed, step)
    assert (found["from"], found["taken"][0]["differs"]) == (checkpoint, {})
    assert files_of(crashed) == before


@pytest.mark.slow
def test_a_step_that_the_run_has_not_taken_yet_is_the_one_that_it_takes_next(crashed, finished):
    found = replayed(crashed, 4)
    assert (found["from"], found["logged"]) == (2, None)
    assert found["taken"][0]["terms"] == replayed(finished / "fast", 4)["taken"][0]["terms"]
    assert "log.jsonl      does not have this step" in metasearch("replay", crashed, "--step", 4).stdout


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [["checkpoint"], ["checkpoint", "checkpoint.previous"]])
def test_a_damaged_checkpoint_is_passed_over_with_a_line(crashed, tmp_path, damaged):
    run = shutil.copytree(crashed, tmp_path / "run")
    for name in damaged:
        (run / name / "weights.safetensors").write_bytes(b"")
    result = metasearch("replay", run, "--step", 3, "--json")
    found = json.loads(result.stdout)
    assert (found["from"], found["taken"][0]["differs"]) == (2 - len(damaged), {})
    assert f"{run / 'checkpoint' / 'weights.safetensors'}: the checkpoint is damaged" in result.stderr
    assert "passed over" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "mode", "changes"),
    [
        ("maml-tiny", "trans", ["dropout=true"]),
        ("maml-tiny", "trans", ["episodes.queries=similar", "episodes.negatives=hard"]),
        ("meta-sgd-tiny", "trans", []),
        ("maml-tiny", "trans", ["neutralise=before"]),
        ("maml-align-tiny", "mono-bi-multi", ["episodes.translations=true", "loss.name=infonce", "loss.align=jsd"]),
    ],
)
def test_whatever_a_step_depends_on_besides_its_number_is_made_again(tmp_path, recipe, mode, changes):
    with pytest.raises(Crash):
        train.begin(configured(recipe, mode, changes), tmp_path / "run", StoppedAt(3, Crash()))
    assert [replayed(tmp_path / "run", step)["taken"][0]["differs"] for step in (1, 2, 3)] == [{}, {}, {}]


@pytest.mark.slow
def test_the_other_gradients_are_the_same_up_to_rounding_and_the_steps_before_are_the_runs_own(finished):
    found = replayed(finished / "fast", 3, "--gradients", "reference")
    assert found["taken"][0]["gradients"] == "reference"
    assert all(found["taken"][0]["differs"].get(name, 0) < 1e-5 for name in ("loss", "task", "grad"))
    said = metasearch("replay", finished / "fast", "--step", 3, "--both").stdout
    (apart,) = re.findall(r"^\|fast - reference\| / \|reference\| = (.*)$", said, re.M)
    assert 0 < float(apart) < 1e-4
    assert said.index("gradients: fast") < said.index("the same bits") < said.index("gradients: reference")


@pytest.mark.slow
def test_norms_by_part_make_up_the_norm_of_the_whole(finished):
    (taken,) = replayed(finished / "reference", 2)["taken"]
    assert list(taken["norms"]) == ["embeddings", "layer 0", "the rest"]
    whole = sum(norm**2 for norm in taken["norms"].values()) ** 0.5
    assert whole == pytest.approx(taken["terms"]["grad"], rel=1e-6)


@pytest.mark.slow
def test_ids_say_which_texts_the_episodes_hold_and_texts_prints_them(finished):
    data = load_benchmark("demo").data
    questions = {q.id for q in data.questions}
    candidates = {c.id for c in data.candidates}
    brief = metasearch("replay", finished / "fast", "--step", 2).stdout
    ids = [name for line in brief.splitlines() if line.startswith("    ") and "/" in line for name in line.split()]
    assert len(ids) == 4 * 3 * 2
    assert all(q in questions and {p, n} <= candidates for q, p, n in (name.split("/") for name in ids))
    assert "episode 1 of 4: el_el -> el_ar -> el_{ar,el,hi}" in brief
    asked = {(q.id, q.language): q.text for q in data.questions}
    texts = metasearch("replay", finished / "fast", "--step", 2, "--texts").stdout
    first = ids[0].split("/")[0]
    assert asked[first, "el"] in texts
    assert asked[first, "el"] not in brief


@pytest.mark.slow
def test_a_step_that_comes_out_otherwise_says_by_how_much_and_what_is_different_here(finished, tmp_path):
    run = shutil.copytree(finished / "fast", tmp_path / "run")
    (run / "SHA256SUMS").unlink()  # as of an earlier release, whose files nothing holds
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    event = next(event for event in log if event["step"] == 2 and "loss" in event)
    event["task"] *= 2
    (run / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in log))
    rows = (run / "results.jsonl").read_text()
    (run / "results.jsonl").write_text(rows.replace(f'"torch": "{torch.__version__}"', '"torch": "0.1"'))
    facts = json.loads((run / "facts.json").read_text())
    (run / "facts.json").write_text(json.dumps(facts | {"threads": 99}))
    said = metasearch("replay", run, "--step", 2).stdout
    assert "log.jsonl      differs, relatively: task by 5.0e-01. Made elsewhere: torch 0.1, here" in said
    assert "99 threads, here" in said


@pytest.mark.slow
def test_a_step_without_finite_loss_names_episodes_and_command_and_the_command_shows_it(tmp_path, monkeypatch):
    class Spoiled(ReferenceGradients):
        def take(self, learner, episodes):
            loss = super().take(learner, episodes)
            arrangement = str(episodes[0].arrangement)
            return OuterLoss(loss.total * (torch.nan if arrangement in bad else 1.0), loss.terms)

    run, bad = tmp_path / "a run", set()
    monkeypatch.setattr(compose, "make_gradients", lambda *_: Spoiled())
    with pytest.raises(Crash):
        train.begin(configured(), run, StoppedAt(2, Crash()))
    bad.add("el_el -> el_ar -> el_{ar,el,hi}")
    with pytest.raises(NonFiniteError) as error:
        resume_run(run)
    said = str(error.value)
    assert "the meta-train loss at outer step 2 is nan (task " in said
    assert "of episodes el_el -> el_ar -> el_{ar,el,hi} (" in said
    assert "and 2 more; the step was not taken" in said
    assert said.endswith(f"Look at the step with: metasearch replay '{run}' --step 2")
    result = metasearch("replay", run, "--step", 2, code=4)
    assert "finite         no: the loss" in result.stdout
    assert "error: the meta-train loss at outer step 2 is nan" in result.stderr
    assert replayed(run, 2, code=4)["taken"][0]["terms"]["loss"] is None
    # A step on the way is named with its own command.
    said = metasearch("replay", run, "--step", 3, code=4).stderr
    assert said.strip().endswith(f"metasearch replay '{run}' --step 2")


@pytest.mark.slow
def test_a_step_that_there_is_not_is_refused(finished, tmp_path):
    run = finished / "fast"
    assert "--step 0: outer steps are counted from 1" in metasearch("replay", run, "--step", 0, code=2).stderr
    said = metasearch("replay", run, "--step", STEPS + 1, code=2).stderr
    assert f"--step {STEPS + 1}: {run} ended after outer step {STEPS}" in said
    RunFolder.create(tmp_path / "new", configured(), load_benchmark("demo").data.fingerprint)
    said = metasearch("replay", tmp_path / "new", "--step", STEPS + 1, code=2).stderr
    assert f"--step {STEPS + 1}: {tmp_path / 'new'} has outer steps 1 to {STEPS}" in said
    said = metasearch("replay", run, "--step", 1, "--both", "--gradients=fast", code=2).stderr
    assert "leave out --gradients" in said
    assert "Missing option '--step'" in metasearch("replay", run, code=2).stderr


@pytest.mark.slow
def test_what_is_no_training_is_refused_and_what_is_near_is_named(finished, tmp_path):
    said = metasearch("replay", finished / "fats", "--step", 1, code=5).stderr
    assert f"{finished / 'fats'} does not exist. Did you mean '{finished / 'fast'}'?" in said
    assert "is no run" in metasearch("replay", tmp_path, "--step", 1, code=5).stderr
    config = DistillConfig(recipe=load_distillation("compress"), teacher="tiny", assistant="tiny", corpus=("x",))
    RunFolder.create(tmp_path / "distilled", config, "")
    said = metasearch("replay", tmp_path / "distilled", "--step", 1, code=2).stderr
    assert f"{tmp_path / 'distilled'} is a distillation: the steps of its stages cannot be taken alone" in said


@pytest.mark.slow
def test_changed_data_and_code_that_is_not_trusted_again_are_refused(tmp_path):
    RunFolder.create(tmp_path / "other", configured(), "other")
    said = metasearch("replay", tmp_path / "other", "--step", 1, code=3).stderr
    assert "the data has changed since the run began (fingerprint other" in said
    RunFolder.create(tmp_path / "code", configured(trust_remote_code=True), load_benchmark("demo").data.fingerprint)
    said = metasearch("replay", tmp_path / "code", "--step", 1, code=2).stderr
    assert "the run began with --trust-remote-code; say it again" in said
    assert metasearch("replay", tmp_path / "code", "--step", 1, "--trust-remote-code").stdout


@pytest.mark.slow
def test_a_cell_of_a_study_is_a_run_and_the_study_and_a_score_are_none(tmp_path, monkeypatch):
    inline(monkeypatch)
    flags = ["--task=demo-sts", "--encoder=tiny", "--mode=mono-bi", "--learner=fine-tune", "--folds=0,", "--seeds=0"]
    study = tmp_path / "study"
    crossval(*flags, "--max-steps=2", "--threads=1", "--device=cpu", "-o", study)
    assert replayed(study / "cells" / TUNED, 2)["taken"][0]["differs"] == {}
    assert "is a study; name one of the runs" in metasearch("replay", study, "--step", 1, code=2).stderr
    assert "it has no steps" in metasearch("replay", study / "cells" / ZERO, "--step", 1, code=2).stderr
