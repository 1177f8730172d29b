"""Studies on a real cluster of Slurm: what ends and interrupts jobs there. Without accounting: `sacct` never helps."""

import re
import signal
import time

import pytest

from helpers import slurm_cluster
from helpers.commands import metasearch
from helpers.crossval import EIGHT, TUNED, attempts, scores, steps, undisturbed
from helpers.launchers import Runner
from helpers.slurm_cluster import slurm
from metasearch.pipelines.study.folder import StudyFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

ON_SLURM = ["--launcher=slurm", "--launcher-set=cpus=1"]
NOISE = ("Traceback", "accounting", "sacct", "submitit")


@pytest.fixture(scope="module")
def cluster():
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.cluster() as found:
        yield found


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The scores of the same study in this process."""
    return undisturbed(tmp_path_factory.mktemp("expected") / "study", *EIGHT)


@pytest.fixture
def study(tmp_path, cluster):
    cluster.clear()
    return StudyFolder(tmp_path / "a study's folder")


def running(study):
    """Return the trainings that have reached steps and run, with their job numbers."""
    live = set(slurm("squeue", "--noheader", "--states=RUNNING", "--format=%i").split())
    return {name: job for name, job in study.queued().items() if job in live and 3 <= len(steps(study, name)) < 40}


def state(job):
    return slurm("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()


def one(runner, study):
    """Wait for a training that runs; return its cell and job."""
    runner.until(lambda: running(study))
    return next(iter(running(study).items()))


def quiet(wrote):
    """Check that what a runner wrote is a line for each thing that happened."""
    assert not [word for word in NOISE if word in wrote], wrote
    lines = wrote.splitlines()
    assert all(line.startswith(("metasearch: ", "  ")) for line in lines), wrote
    assert len([line for line in lines if "trying again" in line]) <= 3, wrote


def test_eight_cells_survive_requeue_a_lost_node_a_killed_controller_and_a_killed_runner(cluster, study, expected):
    command = ["crossval", *EIGHT, *ON_SLURM, "-o", study.path]
    with Runner(*command) as runner:
        # No job begins at this moment: its `srun` would fail.
        runner.until(lambda: len(running(study)) == 2)
        cluster.kill_controller()
        runner.until(lambda: "Unable to contact slurm controller" in runner.wrote())
        runner.killed()
        quiet(runner.wrote())
    cluster.begin_controller()
    with Runner(*command) as runner:
        name, job = one(runner, study)
        slurm("scontrol", "requeue", job)
        runner.until(lambda: state(job) == "PENDING")
        lost, job = one(runner, study)
        node = slurm("squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
        slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        runner.until(lambda: state(job) == "PENDING")
        code, _, wrote = runner.ended()
    cluster.resume(node)
    assert code == 0, wrote
    quiet(wrote)
    assert scores(study.path) == expected
    for each in (name, lost):
        assert attempts(study, each) >= 2
        assert steps(study, each) == list(range(1, 41))
    assert not study.jobs.exists()


def test_a_time_limit_requeues_a_cell_with_the_same_bits(cluster, study, expected):
    flags = [*ON_SLURM, "--launcher-set=time=1 before=10"]
    with Runner("crossval", *EIGHT, "--seeds=0", *flags, "-o", study.path) as runner:
        _, job = one(runner, study)
        # Limits are whole minutes, and Slurm looks for them twice a minute: the training goes on one second in four.
        while attempts(study, TUNED) == 1 and len(steps(study)) < 30:
            for name, seconds in (("STOP", 3), ("CONT", 1)):
                slurm("scancel", f"--signal={name}", job)
                time.sleep(seconds)
        code, _, wrote = runner.ended()
    assert code == 0, wrote
    quiet(wrote)
    assert attempts(study, TUNED) >= 2
    assert "stopping after this step" in study.log(TUNED).read_text()
    assert steps(study) == list(range(1, 41))
    assert scores(study.path) == [row for row in expected if row["seed"] == 0]


def test_a_cancelled_cell_is_named_with_its_state_and_resumes(cluster, study, expected):
    with Runner("crossval", *EIGHT, *ON_SLURM, "-o", study.path) as runner:
        name, job = one(runner, study)
        slurm("scancel", job)
        code, _, wrote = runner.ended()
    assert code == 7, wrote
    quiet(wrote)
    assert f"  {name}: its job {job} ended in state CANCELLED: stopped" in wrote
    assert "1 of the study's runs failed; the others are done" in wrote
    with Runner("resume", study.path) as runner:
        assert runner.ended()[0] == 0
    assert scores(study.path) == expected
    assert steps(study, name) == list(range(1, 41))


def test_refused_jobs_wait_for_room(cluster, study, expected):
    cluster.configure("MaxJobCount=4", "MinJobAge=2")
    try:
        with Runner("crossval", *EIGHT, *ON_SLURM, "-o", study.path) as runner:
            code, _, wrote = runner.ended()
    finally:
        cluster.configure()
    assert code == 0, wrote
    quiet(wrote)
    assert "Slurm temporarily unable to accept job" in wrote
    assert scores(study.path) == expected


def test_ctrl_c_cancels_what_waits_and_saves_what_runs(cluster, study, expected):
    with Runner("crossval", *EIGHT, *ON_SLURM, "-o", study.path) as runner:
        name, _ = one(runner, study)
        reached = len(steps(study, name))
        began = time.monotonic()
        runner.send(signal.SIGINT)
        code, _, wrote = runner.ended()
    assert code == 130, wrote
    quiet(wrote)
    assert time.monotonic() - began < 60
    assert study.queued() == {}
    assert re.search(r"model and checkpoint are saved", study.log(name).read_text())
    slurm_cluster.wait(lambda: not slurm("squeue", "--noheader"))
    ran = metasearch("resume", study.path, code=0)
    quiet(ran.stderr)
    assert len(steps(study, name)) == 40 > reached
    assert scores(study.path) == expected
