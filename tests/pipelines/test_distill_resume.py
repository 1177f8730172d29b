"""A distillation that is stopped, in whatever way, ends as if it had never been, and does nothing twice."""

import os
import signal

import pytest

from helpers import forks
from helpers.commands import metasearch
from helpers.forks import Fork
from helpers.parallel import FOLDERS, distill, flags, results, save_assistant, small, weights, write_corpus
from metasearch.config.distill_run import DistillConfig
from metasearch.runs.folder import RunFolder
from metasearch.runs.progress import ProgressBar

STEPS = 4
PACE = [f"--set=stages.{stage}.budget.eval_every=2" for stage in ("assistant", "embedding", "student")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus, an assistant, and a run of three stages that nothing stopped."""
    folder = tmp_path_factory.mktemp("resume")
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    distill(*arguments(folder), "-o", folder / "whole")
    return folder


def arguments(place):
    return flags(place, "--stages=1-3", "--evaluate=demo-sts", *PACE, steps=STEPS)


def interrupted(args, stage, step, code=130):
    """Run with a Ctrl-C at a step of a stage; return what was said on stderr."""

    def on_step(self, done, total, phase, terms):
        if (phase, done) == (stage, step):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metasearch.runs.progress.ProgressBar.on_step", on_step)
        return distill(*args, code=code).stderr


pytestmark = pytest.mark.slow  # a distillation of all stages is made, stopped and gone on with


def killed(run, stage, step):
    """Resume a run in a fork of this process that is killed at a step of a stage."""

    def on_step(self, done, total, phase, terms):
        if (phase, done) == (stage, step):
            os.kill(os.getpid(), signal.SIGKILL)

    def call():
        ProgressBar.on_step = on_step
        forks.metasearch("resume", run)()

    assert Fork(call).finished()[0] == -signal.SIGKILL


def facts(run):
    """Return the report without how long it took."""
    return [line for line in (run / "report.md").read_text().splitlines() if not line.startswith("| time")]


def snapshot(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_was_killed_and_one_that_was_interrupted_end_with_the_bits_of_the_whole_one(place, tmp_path):
    run = tmp_path / "run"
    error = interrupted([*arguments(place), "-o", run], "assistant", 3)
    assert f"after step 3 of 1-assistant; the checkpoint is saved. Continue with: metasearch resume {run}" in error
    killed(run, "student", 3)
    assert not (run / FOLDERS[2] / "report.md").exists()
    finished = {folder: snapshot(run / folder) for folder in FOLDERS[:2]}
    metasearch("resume", run)
    assert {folder: snapshot(run / folder) for folder in FOLDERS[:2]} == finished
    for folder in FOLDERS[:3]:
        assert weights(run / folder) == weights(place / "whole" / folder)
    assert weights(run) == weights(place / "whole")
    assert results(run) == results(place / "whole")
    dev = [row["learner"] for row in results(run) if row["task"] == "dev"]
    assert dev == ["1 assistant", "2 embedding", "3 student"]
    assert facts(run) == facts(place / "whole")


@pytest.fixture
def begun(place, tmp_path):
    """A run with a corpus of its own that was interrupted in its first stage."""
    write_corpus(tmp_path / "corpus")
    run = tmp_path / "run"
    given = ["--teacher=tiny", f"--assistant={place / 'assistant'}", f"--corpus={tmp_path / 'corpus'}", "--stages=1"]
    interrupted([*given, "--max-steps=6", *small("assistant", budget__eval_every=2), "-o", run], "assistant", 3)
    return run


def test_a_corpus_that_changed_is_refused_and_the_stage_goes_on_when_it_is_put_back(begun):
    file = begun.parent / "corpus" / "en-de.tsv"
    before = file.read_text(encoding="utf-8")
    file.write_text(before + "one more\tnoch eins\n", encoding="utf-8")
    assert "1-assistant: the data has changed since the stage began" in metasearch("resume", begun, code=3).stderr
    file.unlink()
    assert "the data has changed" in metasearch("resume", begun, code=3).stderr
    away = file.parent.rename(file.parent.with_name("elsewhere"))
    assert "corpus: no such file or folder" in metasearch("resume", begun, code=3).stderr
    away.rename(file.parent)
    file.write_text(before, encoding="utf-8")
    assert "| 1 assistant |" in metasearch("resume", begun).stdout


def test_targets_in_a_folder_of_their_own_are_computed_once_for_all_runs(place, tmp_path, monkeypatch):
    kept = tmp_path / "targets"
    given = flags(place, "--stages=1", f"--teacher-cache={kept}", steps=2)
    distill(*given, "-o", tmp_path / "first")
    made = snapshot(kept)
    monkeypatch.setattr(
        "metasearch.pipelines.distill.target_cache.TargetCache._compute", None
    )  # no text is encoded again
    distill(*given, "-o", tmp_path / "second")
    assert snapshot(kept) == made
    assert not (tmp_path / "first/targets").exists()
    assert weights(tmp_path / "first") == weights(tmp_path / "second")


def test_a_distillation_does_not_go_on_with_another_encoder_of_that_name(begun):
    role = "assistant"
    stored = RunFolder(begun).stored(DistillConfig)
    assert stored.weights.keys() >= {role}
    config = begun / "config.yaml"
    config.write_text(config.read_text("utf-8").replace(stored.weights[role], "0123456789abcdef"), "utf-8")
    error = metasearch("resume", begun, code=6).stderr
    assert f"{role} " in error
    assert (
        "has different weights, vocabulary or prompts since the run was created (fingerprint 0123456789abcdef, now"
        in error
    )
