"""What every launcher holds, on a real Slurm and a real Ray cluster as on this machine.

The runner is begun as a user begins it, and the cells are processes of their own. `tests/pipelines/test_slurm.py` and
`tests/pipelines/test_ray.py` have what is particular.
"""

import json
import signal

import pytest

from helpers.crossval import FLAGS, TUNED, ZERO, inline, run, scores
from helpers.launchers import LAUNCHERS, Runner, place
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.study.process import attempts, last_error

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

STEPS = 60
LONG = [*FLAGS, f"--max-steps={STEPS}", "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]
"""Of some seconds, so that it can be stopped on its way."""
BAD = "maml-mono-bi/fold-0-seed-0"


@pytest.fixture(scope="module", params=LAUNCHERS)
def where(request, tmp_path_factory):
    """The flags of a launcher, and its name."""
    with place(request.param, tmp_path_factory.mktemp(request.param)) as (flags, _):
        yield flags, request.param


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The scores of a study that was never interrupted, its cells in this process."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        run(*LONG, "-o", folder)
    return scores(folder)


def stepped(folder, step=3):
    log = folder / "cells" / TUNED / "log.jsonl"
    return lambda: log.is_file() and f'"step": {step},' in log.read_text(encoding="utf-8")


def steps(folder):
    events = [json.loads(line) for line in (folder / "cells" / TUNED / "log.jsonl").read_text().splitlines()]
    return [event["step"] for event in events if "dev" not in event]


def test_a_cell_that_fails_is_named_with_its_log_the_others_go_on_and_nothing_done_is_done_again(where, tmp_path):
    study = StudyFolder(tmp_path / "a study's folder")
    flags = ["crossval", *FLAGS, "--max-steps=2", "--learner=maml,fine-tune", "--set=maml:outer.lr=1e30"]
    with Runner(*flags, *where[0], "-o", study.path) as runner:
        code, said, wrote = runner.ended()
    assert code == 7
    assert "1 of the study's cells failed; the others are done" in wrote
    assert f"  {BAD}: exit code 4: the meta-" in wrote
    assert f"(log: {study.log(BAD)})" in wrote
    assert f"cell {BAD} is not finished" in said
    # A line for each change: begun, at work, ended.
    assert f"crossval: {ZERO} running (0 of 3 done" in wrote
    assert f"crossval: {TUNED} done in 00:" in wrote
    with Runner("resume", study.path) as runner:  # where it ran before
        assert runner.ended()[0] == 7
    assert [attempts(study, name) for name in (ZERO, TUNED, BAD)] == [1, 1, 2]


def test_ctrl_c_saves_what_was_reached_and_the_same_command_goes_on_to_the_same_scores(where, tmp_path, whole):
    study = StudyFolder(tmp_path / "study")
    command = ["crossval", *LONG, *where[0], "-o", study.path]
    with Runner(*command) as runner:
        runner.until(stepped(study.path))
        assert "another crossval is at work in" in run("--resume", study.path, code=5).stderr
        runner.send(signal.SIGINT)
        code, _, wrote = runner.ended()
    assert code == 130, wrote
    assert f"stopped; what was reached is saved. Go on with: metasearch resume {study.path}" in wrote
    assert "; model and checkpoint are saved" in last_error(study, TUNED)
    assert len(steps(study.path)) < STEPS
    with Runner(*command) as runner:
        assert runner.ended()[0] == 0
    assert [attempts(study, name) for name in (ZERO, TUNED)] == [1, 2]
    assert steps(study.path) == list(range(1, STEPS + 1))
    assert scores(study.path) == whole


def test_a_runner_that_is_killed_and_begun_again_loses_nothing_and_does_nothing_twice(where, tmp_path, whole):
    study = StudyFolder(tmp_path / "study")
    command = ["crossval", *LONG, *where[0], "-o", study.path]
    with Runner(*command) as runner:
        runner.until(stepped(study.path))
        runner.killed()
    before = study.at(ZERO).joinpath("report.md").stat().st_mtime_ns
    with Runner(*command) as runner:
        code, _, wrote = runner.ended()
    assert code == 0, wrote
    assert study.at(ZERO).joinpath("report.md").stat().st_mtime_ns == before
    # A job of Slurm does not notice that its runner is gone; the others stop, with a checkpoint.
    assert attempts(study, TUNED) == (1 if where[1] == "slurm" else 2)
    assert steps(study.path) == list(range(1, STEPS + 1))
    assert scores(study.path) == whole
