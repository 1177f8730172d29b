"""A full disk: what is refused before it, and how a run goes on after it."""

import resource
import shlex
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from helpers.crossval import FLAGS, inline
from helpers.parallel import flags, save_assistant, write_corpus
from metasearch.cli import main
from metasearch.encoders.builtin import tiny
from metasearch.files import OutOfRoom, unwritable
from metasearch.spec.recipe import Outer, Pace
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.room import checkpoint_bytes, checkpoints_kept, dense_bytes

TRAIN = ("train", "--mode=trans", "--encoder=tiny", "--learner=fine-tune", "--max-steps=2")
EVERY = "--set=budget.eval_every=1"
SMALL = 4096
"""Bytes."""


def metasearch(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result


@contextmanager
def full_disk():
    """Let the disk be full when a checkpoint is written: no file can be larger than `SMALL`."""
    save = CheckpointStore.save

    def limited(self, checkpoint):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, limits[1]))
            save(self, checkpoint)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, ignored)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointStore, "save", limited)
        yield


def goes_on(said, run):
    """Check that a message ends with the command that goes on, and run it."""
    command = said.strip().partition(". Then go on with: ")[2]
    assert shlex.split(command) == ["metasearch", "resume", str(run)], said
    assert "cannot be written: " in said
    assert " bytes; " in said
    metasearch(*shlex.split(command)[1:])
    assert (run / "report.md").is_file()


@pytest.mark.slow
def test_a_training_that_a_full_disk_ended_says_how_to_go_on(tmp_path):
    run = tmp_path / "my run"
    with full_disk():
        error = metasearch(*TRAIN, EVERY, "-o", run, code=5).stderr.splitlines()[-1]
    assert "/my run/checkpoint cannot be written: " in error
    goes_on(error, run)


@pytest.mark.exhaustive
def test_a_distillation_that_a_full_disk_ended_says_how_to_go_on(tmp_path):
    write_corpus(tmp_path / "corpus", names=("en-de",))
    save_assistant(tmp_path / "assistant")
    run = tmp_path / "run"
    with full_disk():
        error = metasearch("distill", *flags(tmp_path, "--stages=1", steps=1), "-o", run, code=5).stderr
    goes_on(error.splitlines()[-1], run)


@pytest.mark.exhaustive
def test_a_study_that_a_full_disk_ended_says_how_to_go_on(tmp_path, monkeypatch):
    inline(monkeypatch)
    study = tmp_path / "a study"
    with full_disk():
        error = metasearch("crossval", *FLAGS, "--max-steps=1", "-o", study, code=7).stderr
    assert f"The same command, or metasearch resume '{study}', tries again" in error
    assert "checkpoint cannot be written: " in error
    metasearch("resume", study)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device"), "No space left on device. It needs 1,000 bytes; 7 are free"),
        (OSError(122, "Disk quota exceeded"), "Disk quota exceeded. It needs 1,000 bytes; 7 are free"),
        (Exception("I/O error: No space left on device (os error 28)"), "No space left on device. It needs 1,000 "),
        (OSError(13, "Permission denied"), "Permission denied"),
    ],
)
def test_of_a_full_disk_the_bytes_are_said_whoever_met_it(tmp_path, monkeypatch, error, says):
    monkeypatch.setattr("metasearch.files.shutil.disk_usage", lambda path: SimpleNamespace(free=7))
    found = unwritable(tmp_path / "file", error, 1000)
    assert str(found).startswith(f"{tmp_path / 'file'} cannot be written: {says}")
    assert isinstance(found, OutOfRoom) == ("free" in str(found) or "1,000" in str(found))


# What is asked for before.


@pytest.mark.slow
def test_a_training_asks_for_room_before_its_folder_is_made(tmp_path, monkeypatch):
    encoder = tiny.build()
    words = encoder.input.words.weight.nbytes
    least = 2 * (2 * encoder.size) + encoder.size  # two checkpoints with the weights and the best ones, and the model
    most = least + 2 * 2 * (encoder.size - words)
    room = {"free": least}
    monkeypatch.setattr("metasearch.files.shutil.disk_usage", lambda path: SimpleNamespace(**room))
    said = metasearch(*TRAIN, EVERY, "-o", tmp_path / "run", code=5).stderr
    assert f"{tmp_path / 'run'}: the disk is too full: two checkpoints and the model need at least " in said
    assert f" bytes; {least:,} are free" in said
    assert not (tmp_path / "run").exists()
    room["free"] = most
    metasearch(*TRAIN, EVERY, "-o", tmp_path / "run")


@pytest.mark.exhaustive
@pytest.mark.parametrize("learner", ["fine-tune", "maml", "meta-sgd", "reptile"])
@pytest.mark.parametrize("optimizer", ["adamw", "lars"])
def test_the_room_that_is_asked_for_is_never_more_than_a_run_takes(tmp_path, monkeypatch, learner, optimizer):
    """Measured on the checkpoint that is there when the second dev score was written."""
    asked = {}
    monkeypatch.setattr("metasearch.jobs.train.require_room", lambda path, needed, what: asked.update(needed=needed))
    monkeypatch.setattr("metasearch.runs.folder.RunFolder.remove_checkpoint", lambda self: None)
    flags = ["--mode=trans", "--encoder=tiny", f"--learner={learner}", "--max-steps=2", EVERY]
    metasearch("train", *flags, f"--set=outer.optimizer={optimizer}", "-o", tmp_path / "run")
    folders = ("checkpoint", "checkpoint.previous", "model")
    taken = sum(path.stat().st_size for name in folders for path in (tmp_path / "run" / name).rglob("*.safetensors"))
    assert 0.5 * taken < asked["needed"] <= taken


@pytest.mark.parametrize(
    ("steps", "every", "expected"), [(1, 1, 1), (2, 1, 2), (9, 1, 2), (10, 10, 1), (11, 10, 2), (50, 0, 1)]
)
def test_two_checkpoints_stand_side_by_side_from_the_second_dev_score_on(steps, every, expected):
    assert checkpoints_kept(steps, Pace(eval_every=every)) == expected


def test_a_checkpoint_has_weights_twice_and_the_moments_of_its_optimiser():
    weights, dense = 100, 60
    assert checkpoint_bytes(weights, dense, Outer(lr=1e-3)) == 2 * weights + 2 * dense
    assert checkpoint_bytes(weights, dense, Outer(lr=1e-3, optimizer="lars")) == 2 * weights + dense
    encoder = tiny.build()
    model = encoder.input.module.auto_model
    tables = [
        model.embeddings.word_embeddings,
        model.embeddings.position_embeddings,
        model.embeddings.token_type_embeddings,
    ]
    pooler = sum(p.nbytes for p in model.pooler.parameters()) if model.pooler else 0
    assert dense_bytes(encoder.embedder) == encoder.size - sum(table.weight.nbytes for table in tables) - pooler
