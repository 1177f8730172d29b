"""Studies from the command to the table: what is done, done once, taken over, and what failed.

Most run their cells in this process, as the processes of cells would; the last test begins real ones and kills them.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from _parallel import write_corpus
from metasearch.cli import main
from metasearch.errors import Interrupted, MetasearchError
from metasearch.results.read import read_study
from metasearch.study import pool
from metasearch.study.board import Unwatched
from metasearch.study.cell import Reports, do
from metasearch.study.config import StudyConfig
from metasearch.study.folder import StudyFolder
from metasearch.study.plan import plan
from metasearch.study.runner import crossval
from metasearch.study.worker import attempts, how_ended, last_line

STEPS = 8
FLAGS = [
    "--task=demo-sts", "--mode=mono-bi", "--learner=fine-tune", "--folds=0,", f"--max-steps={STEPS}", "--threads=1",
    "--device=cpu",
]  # fmt: skip
ZERO, TUNED = "zero-shot/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"


class Inline:
    """Stands for the process of a cell; runs it here, at once."""

    begun: list[str]

    def __init__(self, study, name, threads, inbox):
        self.begun.append(name)
        stored = study.stored()
        cell = next(cell for cell in plan(stored.config, study.path) if cell.name == name)
        with open(os.devnull, "wb") as sink:
            code = 0
            try:
                do(study, cell, stored, Reports(sink.fileno()))
            except MetasearchError as error:
                inbox.put((name, {"error": str(error)}))
                code = error.exit_code
        inbox.put((name, {"ended": code}))

    def stop(self):
        """Do nothing: it has ended."""


@pytest.fixture
def begun(monkeypatch):
    """Run cells in this process; return the names of those that were begun."""
    monkeypatch.setattr(pool, "Worker", Inline)
    monkeypatch.setattr(Inline, "begun", [], raising=False)
    return Inline.begun


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "Worker", Inline)
        patch.setattr(Inline, "begun", [], raising=False)
        return folder, run(*FLAGS, "-o", folder)


def run(*args, code=0):
    """Run `metasearch crossval`; check its exit code and that no traceback is shown."""
    result = CliRunner().invoke(main, ["crossval", *map(str, args)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def scores(folder):
    """Return what a study's scores depend on, without the versions."""
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in row.items() if key != "versions"} for row in rows]


def table(folder):
    return (folder / "report.md").read_text(encoding="utf-8").partition("\n")[2]


def test_a_study_can_be_read_back_and_its_table_is_printed(whole):
    folder, result = whole
    study = read_study([folder])
    assert ([arm.label for arm in study.arms], study.folds, study.missing) == (["zero-shot", "fine-tune"], (0,), ())
    assert result.stdout == f"{(folder / 'report.md').read_text()}\nstudy: {folder}\n"
    assert {row["arm"] for row in scores(folder)} == {"zero-shot", "fine-tune"}


def test_what_is_trained_takes_zero_shot_over_to_the_bit(whole):
    zero, tuned = (whole[0] / "cells" / name for name in (ZERO, TUNED))
    rows = [[json.loads(line) for line in (at / "results.jsonl").read_text().splitlines()] for at in (zero, tuned)]
    same = ("split", "measure", "pool", "language", "value", "step", "seed", "fold", "data", "versions")
    taken = [row for row in rows[1] if row["learner"] == "zero-shot"]
    assert [[row[key] for key in same] for row in taken] == [[row[key] for key in same] for row in rows[0]]
    assert {row["mode"] for row in taken} == {"mono-bi"}
    file = "queries/demo-sts.zero-shot.test.npz"
    assert (zero / file).is_file()
    assert (tuned / file).is_file()


def test_models_and_checkpoints_of_finished_cells_are_deleted(whole):
    assert not {path.name for path in (whole[0] / "cells" / TUNED).iterdir()} & {"model", "checkpoint"}


def test_what_is_finished_is_never_done_again(whole, begun):
    before = (whole[0] / "cells" / TUNED / "report.md").stat().st_mtime_ns
    assert run(*FLAGS, "-o", whole[0]).stdout == whole[1].stdout
    shown = json.loads(run("--resume", whole[0], "--json").stdout)
    assert {row["arm"] for row in shown["results"]} == {"zero-shot", "fine-tune"}
    assert begun == []
    assert (whole[0] / "cells" / TUNED / "report.md").stat().st_mtime_ns == before


def test_another_setting_is_refused_with_both_values(whole, begun):
    said = run(*FLAGS, "--max-steps=7", "-o", whole[0], code=2).output
    assert f"the study has max_steps '{STEPS}', not '7'" in said
    assert begun == []


def test_a_study_that_came_to_nothing_may_be_configured_anew(tmp_path, begun):
    run(*FLAGS, "--encoder", "tinny", "-o", tmp_path / "study", code=7)
    assert not StudyFolder(tmp_path / "study").reached
    run(*FLAGS, "--learner", "zero-shot", "-o", tmp_path / "study")
    assert StudyFolder(tmp_path / "study").stored().config.encoder == "tiny"
    assert StudyFolder(tmp_path / "study").reached


def test_the_engine_is_kept_with_the_study_and_the_same_command_does_not_change_it(whole, tmp_path, begun):
    assert StudyFolder(whole[0]).stored().config.engine == "fast"
    assert json.loads((whole[0] / "cells" / TUNED / "facts.json").read_text())["engine"] == "fast"
    study = tmp_path / "study"
    study.mkdir()
    text = (whole[0] / "study.yaml").read_text(encoding="utf-8")
    (study / "study.yaml").write_text(text.replace("  engine: fast\n", ""), encoding="utf-8")
    (study / "cells").symlink_to(whole[0] / "cells")  # of a study from before there was a choice
    run(*FLAGS, "-o", study)
    assert StudyFolder(study).stored().config.engine == "reference"
    said = run(*FLAGS, "--engine=fast", "-o", study, code=2).output
    assert "the study has engine 'reference', not 'fast'" in said
    assert begun == []


def test_resume_takes_no_settings(whole):
    assert "leave out --max-steps" in run("--resume", whole[0], "--max-steps=7", code=2).output


def test_other_data_or_versions_are_refused(whole, tmp_path, begun):
    study = tmp_path / "study"
    study.mkdir()
    text = (whole[0] / "study.yaml").read_text(encoding="utf-8")
    found = next(line for line in text.splitlines() if line.startswith("data_fingerprint"))
    (study / "study.yaml").write_text(text.replace(found, "data_fingerprint: other"), encoding="utf-8")
    assert "the data has changed since the study began (fingerprint other" in run("--resume", study, code=3).output
    torch = next(line for line in text.splitlines() if line.startswith("  torch"))
    (study / "study.yaml").write_text(text.replace(torch, "  torch: '1.0'"), encoding="utf-8")
    assert "the study began with torch 1.0, this is" in run("--resume", study, code=2).output
    assert begun == []


def test_one_runner_at_a_time(whole):
    with StudyFolder(whole[0]).held():
        assert "another crossval is at work in" in run("--resume", whole[0], code=5).output


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    assert "exists already and is no study" in run(*FLAGS, "-o", tmp_path, code=5).output
    assert "is no study: it has no study.yaml" in run("--resume", tmp_path, code=5).output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_cell_that_fails_is_named_the_others_go_on_and_the_same_command_tries_it_again(tmp_path, begun):
    flags = [*FLAGS, "--max-steps=2", "--learner=maml,fine-tune", "--set=maml:outer.lr=1e30", "-o", tmp_path / "study"]
    bad, good = "maml-mono-bi/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"
    result = run(*flags, code=7)
    assert "1 of the study's cells failed" in result.stderr
    assert f"{bad}: exit code 4: the meta-" in result.stderr
    assert f"log: {tmp_path / 'study' / 'cells' / bad}.log" in result.stderr
    assert "fine-tune" in result.stdout
    assert f"cell {bad} is not finished" in result.stdout
    assert begun == [ZERO, bad, good]
    run(*flags, code=7)
    assert begun == [ZERO, bad, good, bad]


def test_what_needs_a_failed_cell_is_skipped_and_said_so(tmp_path, begun):
    study = tmp_path / "study"
    result = run(*FLAGS, f"--encoder={empty(tmp_path)}", "-o", study, code=7)
    assert f"{TUNED}: it needs {ZERO}, which failed" in result.stderr
    assert begun == [ZERO]


def empty(folder):
    """Return a folder that is no encoder."""
    (folder / "encoder").mkdir()
    return folder / "encoder"


def test_zero_shot_of_an_encoder_that_depends_on_no_seed_is_computed_once(tmp_path, begun, monkeypatch):
    from metasearch import run as composition
    from metasearch import scoring

    evaluated = []
    load, evaluate = composition.load_encoder, scoring.evaluate
    monkeypatch.setattr(composition, "load_encoder", lambda *args, **more: load(*args[:3], 0, *args[4:], **more))
    monkeypatch.setattr(scoring, "evaluate", lambda *args: evaluated.append(args) or evaluate(*args))
    run(*FLAGS, "--learner=zero-shot", "--seeds=4,5", "-o", tmp_path / "study")
    assert begun == ["zero-shot/fold-0-seed-4", "zero-shot/fold-0-seed-5"]
    assert len(evaluated) == 2  # dev and test, with the first seed
    by_seed = {seed: [row["value"] for row in scores(tmp_path / "study") if row["seed"] == seed] for seed in (4, 5)}
    assert by_seed[4] == by_seed[5] != []


def test_zero_shot_of_an_encoder_that_is_made_from_a_seed_is_computed_with_each(tmp_path, begun):
    run(*FLAGS, "--learner=zero-shot", "--seeds=4,5", "-o", tmp_path / "study")
    by_seed = {seed: [row["value"] for row in scores(tmp_path / "study") if row["seed"] == seed] for seed in (4, 5)}
    assert by_seed[4] != by_seed[5]


@pytest.mark.parametrize("left", ["", "data_fingerprint: x\nconf"])
def test_a_cell_whose_folder_was_half_made_is_begun_again(whole, tmp_path, begun, left):
    study = tmp_path / "study"
    (study / "cells" / ZERO).mkdir(parents=True)
    (study / "cells" / ZERO / "config.yaml").write_text(left, encoding="utf-8")
    config = StudyFolder(whole[0]).stored()
    alone = config.config.model_copy(update={"trained": ()})
    StudyFolder(study).store(config.model_copy(update={"config": alone, "cells": [ZERO]}))
    run("--resume", study)
    zero = [row for row in scores(whole[0]) if row["arm"] == "zero-shot"]
    assert [row for row in scores(study) if row["arm"] == "zero-shot"] == zero


class Busy:
    """Stands for the process of a cell that is at work until it is stopped, or, if `deaf`, until it is killed."""

    deaf = False
    heard: list[tuple[str, str]]

    def __init__(self, study, name, threads, inbox):
        self.name, self.code = name, None

    def stop(self):
        self.heard.append((self.name, "stop"))
        self.code = None if self.deaf else Interrupted.exit_code

    def kill(self):
        self.heard.append((self.name, "kill"))
        self.code = -signal.SIGKILL


class Impatient(Unwatched):
    """Presses Ctrl-C so many times, each while the table is drawn."""

    def __init__(self, times):
        self.left = times

    def ticked(self, board):
        if self.left:
            self.left -= 1
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("times", "heard", "said"),
    [
        (1, ["stop"], "stopped; what was reached is saved"),
        (2, ["stop", "kill"], "killed; the last checkpoints are there"),
    ],
)
def test_ctrl_c_stops_all_processes_and_again_kills_them(tmp_path, monkeypatch, times, heard, said):
    monkeypatch.setattr(pool, "Worker", Busy)
    monkeypatch.setattr(Busy, "heard", [], raising=False)
    monkeypatch.setattr(Busy, "deaf", times == 2)
    config = StudyConfig(task="demo-sts", encoder="tiny", folds=(0, 1, 2))
    with pytest.raises(Interrupted, match=f"{said}. Go on with the same command, or: metasearch crossval --resume"):
        crossval(config, tmp_path / "study", jobs=2, watcher=Impatient(times))
    at_work = ["zero-shot/fold-0-seed-0", "zero-shot/fold-1-seed-0"]
    assert Busy.heard == [(name, what) for what in heard for name in at_work]


def test_an_exit_code_is_said_in_words():
    assert [how_ended(code) for code in (4, -9)] == ["exit code 4", "killed by SIGKILL"]


@pytest.mark.timeout(600)  # three processes import torch, on a machine that may be busy
def test_a_killed_runner_goes_on_with_the_same_command_and_does_nothing_twice(whole, tmp_path, begun):
    folder = tmp_path / "study"
    command = [sys.executable, "-m", "metasearch", "crossval", *FLAGS, "-o", str(folder)]
    study, log = StudyFolder(folder), folder / "cells" / TUNED / "log.jsonl"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as runner:
        while runner.poll() is None and not (log.is_file() and '"step": 1,' in log.read_text()):
            time.sleep(0.05)
        runner.send_signal(signal.SIGKILL)
    assert runner.returncode == -signal.SIGKILL
    assert (attempts(study, ZERO), attempts(study, TUNED)) == (1, 1)
    before = study.at(ZERO).joinpath("report.md").stat().st_mtime_ns
    run(*FLAGS, "-o", folder)  # waits until the process that the runner left has saved its checkpoint
    assert "; model and checkpoint are saved" in last_line(study, TUNED)
    assert begun == [TUNED]
    assert study.at(ZERO).joinpath("report.md").stat().st_mtime_ns == before
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["step"] for event in steps if "dev" not in event] == list(range(1, STEPS + 1))
    assert table(folder) == table(whole[0])
    assert scores(folder) == scores(whole[0])


def test_a_distillation_is_an_arm_like_any_other(tmp_path, begun):
    corpus = write_corpus(tmp_path / "corpus")
    sizes = [f"--set=ema-small:stages.align.{value}" for value in ("corpus.dev=5", "budget.batch=8")]
    flags = ["--task=demo-sts", "--distill=ema-small", "--student=tiny", f"--corpus={corpus}", "--max-steps=2", *sizes]
    run(*flags, "--folds=2", "--threads=1", "-o", tmp_path / "study")
    assert begun[2:] == ["ema-small/seed-0", "ema-small/fold-0-seed-0", "ema-small/fold-1-seed-0"]
    study = read_study([tmp_path / "study"])
    assert ([arm.label for arm in study.arms], study.folds) == (["zero-shot", "ema-small"], (0, 1))
    assert (tmp_path / "study" / "cells" / "ema-small" / "seed-0" / "model").is_dir()
