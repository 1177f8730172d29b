"""The job of a cell: its command, its log, how it is requeued; and what Slurm is asked for."""

import json
import math
import os
import pickle
import subprocess
import sys

import pytest

from helpers import slurm
from helpers.commands import metasearch
from helpers.configs import nested
from helpers.crossval import FLAGS, TUNED, attempts, run, without
from metasearch.config.study import LauncherConfig, StudyConfig
from metasearch.pipelines.study.cell import STOPPED, CellJob, last_error
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import submitit_jobs
from metasearch.pipelines.study.launchers.submitit_jobs import RequeuedCell, slurm_parameters
from metasearch.runs import signals


@pytest.mark.slow
def test_a_job_ends_with_the_exit_code_of_its_run_and_its_log_has_all_output(tmp_path):
    study = StudyFolder(tmp_path)
    code = (
        "import pickle, sys; print('before'); job = pickle.load(sys.stdin.buffer); print(job()); "
        "print('after', file=sys.stderr)"
    )
    job = CellJob(study.at("a/seed-0"), study.log("a/seed-0"), ["--none"])
    ran = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(job), capture_output=True, check=True)
    assert (ran.stdout, ran.stderr) == (b"before\n2\n", b"after\n")
    assert attempts(study, "a/seed-0") == 1
    assert last_error(study.log("a/seed-0")).startswith("No such option '--none'")


def test_a_cell_is_requeued_until_three_time_limits_in_a_row_were_without_progress(tmp_path):
    log = tmp_path / "run" / "log.jsonl"
    log.parent.mkdir()

    def limits(job, count):
        found = []
        for _ in range(count):
            submission = job and job.checkpoint()
            job = submission and submission.function
            found.append(job is not None)
        return job, found

    log.write_text('{"step": 1}\n')
    job, found = limits(RequeuedCell(log.parent, tmp_path / "run.log", ()), 3)
    assert found == [True, True, True]
    log.write_text('{"step": 1}\n{"step": 2}\n')
    assert limits(job, 4)[1] == [True, True, True, False]


def test_settings_become_parameters_of_slurm():
    settings = {"cpus": "4", "gpus": "1", "memory": "8G", "time": "4:00:00", "before": "300", "partition": "gpu"}
    found = slurm_parameters(LauncherConfig("slurm", settings), threads=2)
    assert (found["cpus_per_task"], found["srun_args"]) == (4, ["--cpus-per-task=4"])
    assert (found["signal_delay_s"], found["gpus_per_node"]) == (300, 1)
    assert found["additional_parameters"] == {"requeue": True, "mem": "8G", "partition": "gpu", "time": "4:00:00"}
    assert slurm_parameters(LauncherConfig("slurm"), threads=2)["cpus_per_task"] == 2


def test_a_refused_submission_and_missing_commands_are_named(tmp_path, monkeypatch):
    flags = [*FLAGS, "--launcher=slurm", "-o", tmp_path / "study"]
    (tmp_path / "bin").mkdir()
    with slurm.cluster(tmp_path / "bin"):
        said = run(*flags, "--launcher-set=partition=none", code=2).stderr
        assert "sbatch: error: invalid partition specified: none" in said
    # A container may have some of the commands.
    (tmp_path / "bin" / "squeue").unlink()
    for path, missing in ((tmp_path / "bin", "squeue"), (tmp_path, "srun")):
        monkeypatch.setenv("PATH", str(path))
        assert f"{missing} is not found: --launcher slurm needs Slurm's commands" in run(*flags, code=2).stderr


def in_slurm(folder):
    """Return a study with a launcher in Slurm, and its metadata."""
    study = StudyFolder(folder / "study")
    study.jobs.mkdir(parents=True)
    config = nested(StudyConfig, task="demo-sts", encoder="tiny", folds=(0,))
    parts = {"data_fingerprint": "d", "versions": {}, "cells": []}
    return study, StudyMetadata(config=config, place=LauncherConfig("slurm"), **parts)


def test_squeue_alone_tells_which_jobs_have_ended_and_who_submitted_one_unnoted(tmp_path, monkeypatch, said):
    study, stored = in_slurm(tmp_path)
    study.queue.write_text(json.dumps({"cancelled": "7", "running": "8", "forgotten": "9", "late": "11"}))
    (tmp_path / "bin").mkdir()
    with slurm.cluster(tmp_path / "bin") as cluster:
        for number, state in (("7", "CANCELLED"), ("8", "RUNNING"), ("10", "PENDING"), ("11", "TIMEOUT")):
            slurm._note(cluster, number, state=state, script=str(study.jobs / f"{number}_submission.sh"))
        launcher = submitit_jobs.Slurm(study, stored)
        assert slurm._jobs(cluster)["10"]["state"] == "CANCELLED"
        assert said() == ["cancelling 10 of a runner that was killed while it submitted"]
        monkeypatch.setattr(submitit_jobs, "_LATE_SECONDS", 0)
        assert {name: end.reason for name, end in launcher.collect().items()} == {
            "cancelled": "its job 7 ended in state CANCELLED without a result",
            "forgotten": "its job 9 ended in state UNKNOWN without a result",
            "late": "its job 11 ended in state TIMEOUT without a result; it reached its time limit: set a longer one "
            "with --launcher-set time=",
        }
        assert study.queued() == {"running": "8"}
        # Where the controller is gone, jobs are taken to continue.
        monkeypatch.setenv("PATH", f"{tmp_path / 'none'}:{os.environ['PATH']}")
        (tmp_path / "none").mkdir()
        (tmp_path / "none" / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
        (tmp_path / "none" / "squeue").chmod(0o755)
        for _ in range(2):
            launcher._polled = -math.inf
            assert launcher.collect() == {}
        assert said()[1:] == ["Unable to contact slurm controller; trying again"]


def test_a_job_that_begins_after_its_study_was_stopped_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(signals, "listen", lambda: None)
    (tmp_path / "stop").touch()
    assert RequeuedCell(tmp_path / "run", tmp_path / "run.log", (), stop=tmp_path / "stop")() == STOPPED[1]
    assert not (tmp_path / "run.log").exists()


@pytest.mark.slow
def test_a_study_runs_where_slurm_conf_names_the_cluster(tmp_path):
    (tmp_path / "bin").mkdir()
    with slurm.cluster(tmp_path / "bin"):
        place = ["--launcher=slurm", "--launcher-set=cpus=1", "-o", tmp_path / "study"]
        run(*without("--learner", "--mode", "--max-steps"), "--learner=zero-shot", *place)


def test_cells_that_may_run_in_slurm_are_not_begun_elsewhere(tmp_path):
    study, stored = in_slurm(tmp_path)
    study.queue.write_text(json.dumps({TUNED: "7"}))
    study.store(stored)
    said = metasearch("resume", study.path, "--launcher=local", code=2).stderr
    assert "jobs may be running in slurm; continue there with --launcher slurm" in said
