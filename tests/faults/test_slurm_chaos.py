"""A study on a real cluster of Slurm while things are killed at random moments."""

import random
import subprocess
import time

import pytest

from helpers import slurm_cluster
from helpers.chaos import Chaos, FinishedCells, kill_one
from helpers.crossval import FLAGS, inline, run, scores
from helpers.slurm_cluster import slurm
from metasearch.pipelines.study.folder import StudyFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

STUDY = [*FLAGS, "--seeds=0,1,2,3", "--max-steps=40", "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]


def jobs():
    """Return the numbers of the jobs that run."""
    found = subprocess.run(
        ["squeue", "--noheader", "--states=RUNNING", "--format=%i"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def disturb(cluster, study, runner):
    """Do one thing at random; return its name."""
    what = random.choice(["requeue", "cancel", "kill cell", "kill runner", "kill controller"])
    if what in ("requeue", "cancel"):
        command = ["scontrol", "requeue"] if what == "requeue" else ["scancel"]
        if not (running := jobs()):
            return "nothing"
        subprocess.run([*command, random.choice(running)], capture_output=True, check=False)
    elif what == "kill cell":
        kill_one("submitit.core._submit", str(study.jobs))
    elif what == "kill runner":
        runner.killed()
    else:
        cluster.kill_controller()
        time.sleep(random.uniform(0, 20))
        cluster.begin_controller()
    return what


def release(cluster, study):
    """Do what an administrator does after a crash: free held jobs, drained nodes, and jobs that have ended."""
    if ghosts := set(jobs()) - set(study.queued().values()):
        subprocess.run(["scancel", *ghosts], capture_output=True, check=False)
    held = [line.split("|") for line in slurm("squeue", "--noheader", "--format=%i|%r").splitlines()]
    for number in (number for number, reason in held if "held" in reason.lower()):
        subprocess.run(["scontrol", "release", number], capture_output=True, check=False)
    for node in cluster.nodes:
        subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], capture_output=True, check=False)


def test_what_is_done_is_done_once_whatever_is_killed(tmp_path):
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        run(*STUDY, "-o", tmp_path / "expected")
    study = StudyFolder(tmp_path / "study")
    command = ["crossval", *STUDY, "--launcher=slurm", "--launcher-set=cpus=1", "-o", study.path]
    cells = FinishedCells(study)
    with slurm_cluster.cluster() as cluster:
        chaos, code = Chaos(), None

        def watch():
            release(cluster, study)
            cells.watch()

        while code != 0:
            code = chaos.run(command, lambda runner: disturb(cluster, study, runner), (2, 12), watch)
    assert set(chaos.ends) <= {0, 2, 7, -9}
    rows = scores(study.path)
    assert rows == scores(tmp_path / "expected")
    assert len(cells) == 8
    print(f"\n{chaos}; {len(cells)} of 8 cells, {len(rows)} scores")  # noqa: T201
