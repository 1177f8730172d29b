"""What is particular to studies in Slurm: jobs that are stopped, put back, cancelled, refused or lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import slurm
from helpers.crossval import FLAGS, TUNED, inline, run, scores
from helpers.launchers import Runner
from metasearch.config.launchers import LauncherConfig
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.study.launchers._slurm_queue import parsed
from metasearch.pipelines.study.launchers._slurm_script import sbatch_options, script_of
from metasearch.pipelines.study.launchers.base import JobStatus
from metasearch.pipelines.study.launchers.slurm import ended
from metasearch.pipelines.study.process import attempts, last_error

POLL = "--launcher-set=poll=1"
LONG = [*FLAGS, "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.cluster(tmp_path_factory.mktemp("slurm")):
        yield


def whole(folder, steps):
    """Return the scores of a study that was never interrupted, its cells in this process."""
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        run(*LONG, f"--max-steps={steps}", "-o", folder)
    return scores(folder)


def at_work(folder):
    """Return the job of the cell that trains, as `scancel` names it, once it has taken a step."""
    log = folder / "cells" / TUNED / "log.jsonl"
    if not log.is_file() or '"step": 3,' not in log.read_text(encoding="utf-8"):
        return None
    (job,) = slurm.slurm("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%F_%K").split()
    return job


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("command", "tried"),
    [
        # What Slurm itself sends before the time limit (--signal=B:USR1@...).
        (["scancel", "--batch", "--signal=USR1"], 2),
        # As for a job that is wanted elsewhere, or whose node died: the same job begins once more.
        (["scontrol", "requeue"], 1),
    ],
    ids=["before the time limit", "put back into the queue"],
)
def test_a_cell_that_slurm_stops_goes_on_by_itself_to_the_same_scores(cluster, tmp_path, command, tried):
    study = StudyFolder(tmp_path / "study")
    with Runner("crossval", *LONG, "--max-steps=60", "--launcher=slurm", POLL, "-o", study.path) as runner:
        runner.until(lambda: at_work(study.path))
        slurm.slurm(*command, at_work(study.path))
        if tried == 1:  # Slurm lets such a job wait for two minutes
            runner.until(lambda: "PENDING" in slurm.slurm("squeue", "--noheader", "--array", "--format=%T"))
            (job,) = slurm.slurm("squeue", "--noheader", "--array", "--format=%F_%K").split()
            slurm.slurm("scontrol", "update", f"JobId={job}", "StartTime=now")
        code, _, wrote = runner.ended()
    assert code == 0, wrote
    if tried == 2:
        assert f"{TUNED} waiting: exit code 143, before its time limit: stopped after outer step" in wrote
    assert attempts(study, TUNED) == tried
    assert scores(study.path) == whole(tmp_path / "whole", 60)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_a_job_that_is_cancelled_by_hand_is_a_failed_cell_with_a_checkpoint(cluster, tmp_path):
    study = StudyFolder(tmp_path / "study")
    with Runner("crossval", *LONG, "--max-steps=400", "--launcher=slurm", POLL, "-o", study.path) as runner:
        runner.until(lambda: at_work(study.path))
        slurm.slurm("scancel", at_work(study.path))
        code, _, wrote = runner.ended()
    assert code == 7
    assert f"  {TUNED}: exit code 143, Slurm says CANCELLED: stopped after outer step" in wrote
    assert "; model and checkpoint are saved" in last_error(study, TUNED)


@pytest.mark.exhaustive
def test_cells_that_may_be_at_work_in_slurm_are_not_begun_elsewhere(cluster, tmp_path):
    study = StudyFolder(tmp_path / "study")
    run(*FLAGS, "--learner=zero-shot", "--launcher=slurm", POLL, "-o", study.path)
    (study.submitted / "metasearch-lost.json").write_text(json.dumps({"job": "7", "cells": {"0": TUNED}}))
    said = run(*FLAGS, "--launcher=local", "-o", study.path, code=2).stderr
    assert "cells may be at work in slurm; go on there with --launcher slurm" in said
    # Slurm knows no such job, as where a runner died before it handed in what it wrote down: the cell is handed in.
    run(*FLAGS, "-o", study.path)
    assert attempts(study, TUNED) == 1
    assert list(study.submitted.glob("*.json")) == []


def test_states_are_read_by_task_and_the_rest_of_a_cancelled_array_has_none():
    lines = "one|12|0|RUNNING\none|12|1|PENDING\ntwo|13|N/A|CANCELLED\n"
    assert parsed(lines) == {("one", 0): ("12", "RUNNING"), ("one", 1): ("12", "PENDING")}


@pytest.mark.parametrize(
    ("code", "state", "expected"),
    [
        ("4", "FAILED", JobStatus("ended", 4)),
        ("4", "", JobStatus("ended", 4)),
        ("143 stopped", "FAILED", JobStatus("ended", 143, "before its time limit", again=True)),
        ("143", "CANCELLED", JobStatus("ended", 143, "Slurm says CANCELLED")),
        ("143", "PREEMPTED", JobStatus("ended", 143, "Slurm says PREEMPTED", again=True)),
        ("137", "OUT_OF_MEMORY", JobStatus("ended", -9, "Slurm says OUT_OF_MEMORY")),
        (None, "TIMEOUT", JobStatus("ended", None, "Slurm says TIMEOUT", again=True)),
        (None, "NODE_FAIL", JobStatus("ended", None, "Slurm says NODE_FAIL", again=True)),
        (None, "OUT_OF_MEMORY", JobStatus("ended", None, "Slurm says OUT_OF_MEMORY")),
        (None, "", JobStatus("ended", None, "its job is gone and left no exit code", again=True)),
    ],
)
def test_an_end_is_told_from_the_cells_exit_code_and_slurms_state(code, state, expected):
    assert ended(code, state, Path("none")) == expected


def test_what_is_asked_becomes_options_of_sbatch():
    place = LauncherConfig("slurm", {"cpus": "4", "gpus": "1", "memory": "8G", "time": "4:00:00", "before": "300"})
    assert sbatch_options(place, Path("/a%b"), "name", 3, threads=2) == [
        "--parsable", "--requeue", "--job-name=name", "--array=0-2", "--cpus-per-task=4", "--signal=B:USR1@300",
        "--output=/a%%b/name_%a.out", "--open-mode=append", "--gres=gpu:1", "--mem=8G", "--time=4:00:00",
    ]  # fmt: skip
    assert "--cpus-per-task=2" in sbatch_options(LauncherConfig("slurm"), Path("/a"), "name", 3, threads=2)


def test_a_script_holds_any_path(tmp_path):
    study = StudyFolder(tmp_path / 'it\'s $HOME; `rm` "x"\n%x')
    script = tmp_path / "script.sh"
    names = ["maml-trans/fold-0-seed-0", "o'ne/$two"]
    written = script_of(study, "name", names, ["sbatch", "a b"], threads=2, trust=True)
    # Up to where the cell's log is opened, the script only sets what it names.
    script.write_text(written.partition("# A job that")[0] + 'printf "%s\\0" "$study" "$cell" "$code"\n')
    ran = subprocess.run(["bash", script], env={"SLURM_ARRAY_TASK_ID": "1"}, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\0")[:3] == [str(study.path), names[1], f"{study.path}/submitted/name_1.code"]
    assert subprocess.run(["bash", "-n"], input=written, text=True).returncode == 0
    assert f"{sys.executable} -m metasearch resume" in written
