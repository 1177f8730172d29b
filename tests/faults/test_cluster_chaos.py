"""A study on a real cluster of Slurm or Ray while jobs, nodes, controllers and runners are killed at random moments."""

import random
import subprocess
import time
from itertools import count

import pytest

from helpers import ray_cluster, slurm_cluster
from helpers.chaos import Chaos, FinishedCells, kill_one
from helpers.crossval import EIGHT, scores, undisturbed
from helpers.slurm_cluster import slurm
from metasearch.pipelines.study.folder import StudyFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]


def jobs():
    """Return the numbers of the jobs that run."""
    found = subprocess.run(
        ["squeue", "--noheader", "--states=RUNNING", "--format=%i"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def disturb_slurm(cluster, study, runner):
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


NUMBERS = count(1)


def disturb_ray(cluster, runner):
    """Kill one thing at random; return its name."""
    what = random.choice(["worker", "worker", "node", "runner"])
    if what == "worker":
        return what if cluster.kill_worker() else "nothing"
    if what == "node":
        cluster.kill(random.choice([name for name in cluster.nodes if name != "head"]))
        cluster.begin_node(f"new-{next(NUMBERS)}")
    else:
        runner.killed()
    return what


def check(study, begin, ends, tmp_path):
    """Begin a study again and again until it is done, and compare it with one that nothing disturbed."""
    expected = undisturbed(tmp_path / "expected", *EIGHT)
    chaos, cells, code = Chaos(), FinishedCells(study), None
    while code != 0:
        code = begin(chaos, cells)
    assert set(chaos.ends) <= ends
    rows = scores(study.path)
    assert rows == expected
    assert len(cells) == 8
    print(f"\n{chaos}; {len(cells)} of 8 cells, {len(rows)} scores")  # noqa: T201


def test_what_is_done_on_slurm_is_done_once_whatever_is_killed(tmp_path):
    if why := slurm_cluster.missing():
        pytest.skip(why)
    study = StudyFolder(tmp_path / "study")
    command = ["crossval", *EIGHT, "--launcher=slurm", "--launcher-set=cpus=1", "-o", study.path]
    with slurm_cluster.cluster() as cluster:

        def begin(chaos, cells):
            def watch():
                release(cluster, study)
                cells.watch()

            return chaos.run(command, lambda runner: disturb_slurm(cluster, study, runner), (2, 12), watch)

        check(study, begin, {0, 2, 7, -9}, tmp_path)


def test_what_is_done_on_ray_is_done_once_whatever_is_killed(tmp_path):
    study = StudyFolder(tmp_path / "study")
    with ray_cluster.cluster() as cluster:
        command = ["crossval", *EIGHT, *cluster.flags, "-o", study.path]

        def begin(chaos, cells):
            return chaos.run(command, lambda runner: disturb_ray(cluster, runner), (2, 10), cells.watch)

        check(study, begin, {0, 7, -9}, tmp_path)
