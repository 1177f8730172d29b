"""The job of a cell: its command, its log, how it is requeued; and what Slurm is asked for."""

import json
import pickle
import subprocess
import sys

import pytest

from helpers import slurm
from helpers.commands import metasearch
from helpers.configs import nested
from helpers.crossval import FLAGS, TUNED, attempts, run
from metasearch.config.study import LauncherConfig, StudyConfig
from metasearch.pipelines.study.cell import CellJob, last_error
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers.slurm_jobs import slurm_parameters
from metasearch.pipelines.study.launchers.submitit_jobs import RequeuedCell


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
    assert found["additional_parameters"] == {
        "requeue": True,
        "mem": "8G",
        "partition": "gpu",
        "time": "4:00:00",
    }
    assert slurm_parameters(LauncherConfig("slurm"), threads=2)["cpus_per_task"] == 2


def test_a_refused_submission_and_missing_commands_are_named(tmp_path, monkeypatch):
    flags = [*FLAGS, "--launcher=slurm", "-o", tmp_path / "study"]
    (tmp_path / "bin").mkdir()
    with slurm.cluster(tmp_path / "bin"):
        said = run(*flags, "--launcher-set=partition=none", code=2).stderr
        assert "sbatch: error: invalid partition specified: none" in said
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "srun is not found: --launcher slurm needs Slurm's commands" in run(*flags, code=2).stderr


def test_cells_that_may_run_in_slurm_are_not_begun_elsewhere(tmp_path):
    study = StudyFolder(tmp_path / "study")
    study.jobs.mkdir(parents=True)
    (study.jobs / "cells.json").write_text(json.dumps({TUNED: "7"}))
    config = nested(StudyConfig, task="demo-sts", encoder="tiny", folds=(0,))
    parts = {"data_fingerprint": "d", "versions": {}, "cells": []}
    study.store(StudyMetadata(config=config, place=LauncherConfig("slurm"), **parts))
    said = metasearch("resume", study.path, "--launcher=local", code=2).stderr
    assert "jobs may be running in slurm; continue there with --launcher slurm" in said
