"""A study on a real cluster of Slurm while things are killed at random moments.

`METASEARCH_CHAOS_SECONDS` says for how long, 60 by default; the test prints what happened, for docs/reliability.md.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from helpers import slurm_cluster
from helpers.crossval import FLAGS, inline, run, scores
from helpers.launchers import Runner
from helpers.slurm_cluster import slurm
from metasearch.pipelines.study.folder import StudyFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("METASEARCH_CHAOS_SECONDS", "60"))
STUDY = [*FLAGS, "--seeds=0,1,2,3", "--max-steps=40", "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]
KNOWN = {0: "done", 2: "refused", 7: "cells failed", -signal.SIGKILL: "killed"}
"""How a runner may end."""


def jobs():
    """Return the numbers of the jobs that run."""
    found = subprocess.run(
        ["squeue", "--noheader", "--states=RUNNING", "--format=%i"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def kill_cell(study):
    """Kill the process of a cell, as the kernel does where memory is short."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text()
        except OSError:
            continue
        if "submitit.core._submit" in command and str(study.jobs) in command:
            found.append(int(path.parent.name))
    if found:
        os.kill(random.choice(found), signal.SIGKILL)


def disturb(cluster, study, runner):
    """Do one thing at random; return its name."""
    what = random.choice(["requeue", "cancel", "kill cell", "kill runner", "kill controller"])
    if what in ("requeue", "cancel"):
        command = ["scontrol", "requeue"] if what == "requeue" else ["scancel"]
        if not (running := jobs()):
            return "nothing"
        subprocess.run([*command, random.choice(running)], capture_output=True, check=False)
    elif what == "kill cell":
        kill_cell(study)
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


def check_lines(wrote):
    """Check that a runner has written nothing but lines of its log, each once for a lasting fault."""
    assert all(line.startswith(("metasearch: ", "  ")) for line in wrote.splitlines()), wrote


def test_what_is_done_is_done_once_whatever_is_killed(tmp_path):
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        run(*STUDY, "-o", tmp_path / "expected")
    study, happened, ends = StudyFolder(tmp_path / "study"), Counter(), Counter()
    command = ["crossval", *STUDY, "--launcher=slurm", "--launcher-set=cpus=1", "-o", study.path]
    random.seed(0)
    finished: dict[str, float] = {}
    with slurm_cluster.cluster() as cluster:
        deadline, code = time.monotonic() + SECONDS, None
        while code != 0:
            with Runner(*command) as runner:
                while runner.process.poll() is None:
                    time.sleep(random.uniform(2, 12))
                    if time.monotonic() < deadline:
                        happened[disturb(cluster, study, runner)] += 1
                    release(cluster, study)
                    for report in study.path.glob("cells/*/*/report.md"):
                        # A finished cell is not scored again: its report stays as it was.
                        assert finished.setdefault(str(report), report.stat().st_mtime) == report.stat().st_mtime
                code, _, wrote = runner.ended()
            ends[KNOWN[code]] += 1
            check_lines(wrote)
            assert ends.total() < 100
    rows = scores(study.path)
    assert rows == scores(tmp_path / "expected")
    assert len(finished) == 8
    print(f"\n{SECONDS:.0f} s: {dict(happened)}; runners: {dict(ends)}; {len(finished)} of 8 cells, {len(rows)} scores")  # noqa: T201
