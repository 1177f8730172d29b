"""The contract of launchers, with real processes: on this machine, by the commands of Slurm, and on a Ray cluster."""

import os
import re
import signal
import subprocess

import pytest

from helpers import slurm
from helpers.commands import metasearch
from helpers.crossval import FLAGS, LONG, TUNED, ZERO, attempts, steps
from helpers.launchers import LAUNCHERS, Runner, place
from metasearch.config.run import RunConfig
from metasearch.pipelines.study.cell import last_error
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.train import TrainRun
from metasearch.runs.folder import RunFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

BAD = "maml-mono-bi/fold-0-seed-0"


@pytest.fixture(scope="module", params=LAUNCHERS)
def where(request, tmp_path_factory):
    """The flags of a launcher, its name, and its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    with place(request.param, folder) as (flags, _):
        yield flags, request.param, folder


def values(folder):
    return [(row["learner"], row["split"], row["measure"], row["value"]) for row in RunFolder(folder).results()]


def signal_slurm(folder, name):
    """Send a signal to the job that runs."""
    (number,) = slurm.running(folder)
    subprocess.run(["scancel", f"--signal={name}", number], check=True)


def signal_local(study, number):
    """Send a signal to the newest job, a child of its controller."""
    newest = max(study.jobs.glob("*_submitted.pkl"), key=lambda path: path.stat().st_mtime)
    controller = newest.name.partition("_")[0]
    (child,) = subprocess.run(["pgrep", "-P", controller], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(child), number)


def test_a_failed_cell_is_named_with_its_log_and_the_others_finish(where, tmp_path):
    study = StudyFolder(tmp_path / "a study's folder")
    flags = ["crossval", *FLAGS, "--max-steps=2", "--learner=maml,fine-tune", "--set=maml:outer.lr=1e30"]
    with Runner(*flags, *where[0], "-o", study.path) as runner:
        runner.until(lambda: f"{ZERO} running" in runner.wrote())
        assert "another crossval is at work in" in metasearch("resume", study.path, code=5).stderr
        code, said, wrote = runner.ended()
    assert code == 7, wrote
    assert "1 of the study's runs failed; the others are done" in wrote
    assert f"  {BAD}: exit code 4: the meta-" in wrote
    assert f"(log: {study.log(BAD)})" in wrote
    assert f"run {BAD} is not finished" in said
    assert f"{ZERO} running (0 of 3 done" in wrote
    assert re.search(rf"{TUNED} done in [^(]+ \(", wrote)
    with Runner("resume", study.path) as runner:  # where it ran before
        assert runner.ended()[0] == 7
    assert [attempts(study, name) for name in (ZERO, TUNED, BAD)] == [1, 1, 2]


def test_a_study_that_is_killed_stopped_and_requeued_has_the_bits_of_an_undisturbed_training(where, tmp_path):
    flags, name, folder = where
    study = StudyFolder(tmp_path / "study")
    command = ["crossval", *LONG, *flags, "-o", study.path]
    with Runner(*command) as runner:
        runner.until(lambda: len(steps(study)) >= 3)
        if name == "slurm":  # its jobs survive their runner, and the next one finds them
            signal_slurm(folder, "STOP")
        runner.killed()
    with Runner(*command) as runner:
        runner.until(lambda: f"{TUNED} " in runner.wrote())
        if name == "slurm":
            signal_slurm(folder, "CONT")
        runner.until(lambda: len(steps(study)) >= 12)
        runner.send(signal.SIGINT)
        code, _, wrote = runner.ended()
    assert code == 130, wrote
    assert f"stopped; progress is saved. Continue with: metasearch resume {study.path}" in wrote
    assert "; model and checkpoint are saved" in last_error(study.log(TUNED))
    reached = len(steps(study))
    assert 12 <= reached < 40
    with Runner("resume", study.path) as runner:
        runner.until(lambda: len(steps(study)) > reached)
        if name == "slurm":  # as before a time limit
            signal_slurm(folder, "USR2")
        elif name == "local":
            signal_local(study, signal.SIGUSR2)
        code, _, wrote = runner.ended()
    assert code == 0, wrote
    assert attempts(study, TUNED) == {"local": 4, "slurm": 3, "ray": 3}[name]
    assert attempts(study, ZERO) == 1
    assert steps(study) == list(range(1, 40 + 1))
    assert not study.jobs.exists()

    config = RunFolder(study.at(TUNED)).stored(RunConfig).config
    TrainRun(config, tmp_path / "alone").execute()
    assert values(study.at(TUNED)) == values(tmp_path / "alone")
