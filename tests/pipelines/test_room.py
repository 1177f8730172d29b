"""A full disk: what is refused before it, and how a run goes on after it."""

import shlex
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from helpers.commands import metasearch
from helpers.crossval import FLAGS, inline
from helpers.files import largest_file
from helpers.parallel import write_corpus
from metasearch.encoders.builtin import tiny
from metasearch.training.checkpoint import CheckpointStore

TRAIN = ("train", "--task=demo-sts", "--mode=mono-bi", "--encoder=tiny", "--learner=fine-tune", "--max-steps=2")
EVERY = "--set=budget.eval_every=1"


@contextmanager
def full_disk():
    """Let the disk be full when a checkpoint is written: no file can have more than 4 KiB."""
    save = CheckpointStore.save

    def limited(self, checkpoint):
        with largest_file(4096):
            save(self, checkpoint)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointStore, "save", limited)
        yield


@pytest.mark.slow
def test_a_training_that_a_full_disk_ended_says_how_to_go_on(tmp_path):
    run = tmp_path / "my run"
    with full_disk():
        error = metasearch(*TRAIN, EVERY, "-o", run, code=5).stderr.splitlines()[-1]
    assert "/my run/checkpoint cannot be written: " in error
    command = error.strip().partition(". Continue with: ")[2]
    assert shlex.split(command) == ["metasearch", "resume", str(run)], error
    assert " bytes; " in error
    metasearch(*shlex.split(command)[1:])
    assert (run / "report.md").is_file()


@pytest.mark.exhaustive
def test_a_study_that_a_full_disk_ended_says_how_to_go_on(tmp_path, monkeypatch):
    inline(monkeypatch)
    study = tmp_path / "a study"
    with full_disk():
        error = metasearch("crossval", *FLAGS, "--max-steps=1", "-o", study, code=7).stderr
    assert f"The same command, or metasearch resume '{study}', tries again" in error
    assert "checkpoint cannot be written: " in error
    metasearch("resume", study)


# What is asked for before.


@pytest.mark.parametrize("command", ["train", "distill"])
def test_a_run_asks_for_three_times_its_model_before_its_folder_is_made(tmp_path, monkeypatch, command):
    needed = 3 * tiny.build().size
    monkeypatch.setattr("metasearch.io.shutil.disk_usage", lambda path: SimpleNamespace(free=needed - 1))
    given = TRAIN
    if command == "distill":
        given = ("distill", "--recipe=align", "--student=tiny", "--teacher=tiny", "--max-steps=1")
        given += (f"--corpus={write_corpus(tmp_path / 'corpus', names=('en-de',))}", "--set=stages.align.corpus.dev=2")
    said = metasearch(*given, "-o", tmp_path / "run", code=5).stderr
    assert said.splitlines()[-1].endswith(
        f"{tmp_path / 'run'}: the disk is too full: model and checkpoints need at least {needed:,} bytes; "
        f"{needed - 1:,} are free"
    )
    assert not (tmp_path / "run").exists()
