"""Checkpoints are whole or not there."""

import json

import pytest
import torch

from helpers.files import largest_file
from metasearch.errors import RunFolderError
from metasearch.runs.folder import RunFolder
from metasearch.training.checkpoint import Checkpoint, CheckpointStore

FILES = ["weights.safetensors", "optimizer.safetensors", "best.safetensors", "learner.safetensors", "state.json"]


def checkpoint(step, size=3):
    weights = {"a": torch.full((size, 2), float(step)), "b": torch.arange(3) * step}
    moments, learner = {"a/exp_avg": torch.ones(size, 2) * step}, {"teacher.a": torch.full((2,), step / 3)}
    return Checkpoint(weights, moments, {}, learner, {"step": step})


def assert_is(found, step, size=3):
    expected = checkpoint(step, size)
    assert found.state == {"step": step}
    assert found.weights.keys() == expected.weights.keys()
    assert all(torch.equal(found.weights[name], value) for name, value in expected.weights.items())
    assert torch.equal(found.optimizer["a/exp_avg"], expected.optimizer["a/exp_avg"])
    assert found.best == {}
    assert found.learner.keys() == expected.learner.keys()
    assert torch.equal(found.learner["teacher.a"], expected.learner["teacher.a"])


def damage(path):
    """Change a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_the_last_checkpoint_is_read_back_and_the_one_before_it_stays(tmp_path):
    store = CheckpointStore(tmp_path)
    assert store.load() is None
    for step in (1, 2, 3):
        store.save(checkpoint(step))
    assert_is(CheckpointStore(tmp_path).load(), 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.previous"]
    RunFolder(tmp_path).remove_checkpoint()
    assert store.load() is None


@pytest.mark.parametrize("stopped", ["between the two renames", "while it wrote"])
def test_a_stop_leaves_the_one_before(tmp_path, stopped):
    store = CheckpointStore(tmp_path)
    store.save(checkpoint(1))
    if stopped == "while it wrote":
        (tmp_path / "checkpoint.new").mkdir()
        (tmp_path / "checkpoint.new" / "weights.safetensors").write_bytes(b"half")
    else:
        (tmp_path / "checkpoint").rename(tmp_path / "checkpoint.previous")
    assert_is(store.load(), 1)
    store.save(checkpoint(2))
    assert_is(store.load(), 2)


@pytest.mark.parametrize("name", FILES)
def test_the_one_before_is_taken_where_the_newest_is_damaged_and_a_line_says_so(tmp_path, name, caplog):
    store = CheckpointStore(tmp_path)
    for step in (1, 2):
        store.save(checkpoint(step))
    damage(tmp_path / "checkpoint" / name)
    assert_is(store.load(), 1)
    (line,) = caplog.messages
    assert f"checkpoint/{name}: the checkpoint is damaged: " in line
    assert line.endswith("; continuing from the previous one, at outer step 1")
    store.save(checkpoint(3))
    assert_is(CheckpointStore(tmp_path).load(), 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["state"].update(step=7),
        lambda tree: tree["state"].update(extra=None),
        lambda tree: tree.update(schema=2),
        lambda tree: tree.update(schema="1"),
        lambda tree: tree.update(hash=tree["hash"][::-1]),
        lambda tree: tree.pop("hash"),
        lambda tree: tree["sha256"].update(best=tree["sha256"]["weights"]),
    ],
    ids=["step", "another-key", "newer-schema", "text-as-schema", "hash", "no-hash", "hash-of-tensors"],
)
def test_an_edited_state_is_not_believed(tmp_path, change):
    store = CheckpointStore(tmp_path)
    store.save(checkpoint(1))
    path = tmp_path / "checkpoint" / "state.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"state\.json: the checkpoint is damaged"):
        store.load()


def test_a_full_disk_keeps_the_last_checkpoint_and_leaves_no_stump(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(checkpoint(1))
    with largest_file(4096), pytest.raises(RunFolderError, match="cannot be written"):
        store.save(checkpoint(2, size=10_000))
    assert_is(store.load(), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_two_damaged_checkpoints_are_an_error_that_names_both(tmp_path):
    store = CheckpointStore(tmp_path)
    for step in (1, 2):
        store.save(checkpoint(step))
    for folder in ("checkpoint", "checkpoint.previous"):
        damage(tmp_path / folder / "best.safetensors")
    with pytest.raises(RunFolderError, match=r"And so is the one before it\. .* delete .*checkpoint and .*\.previous"):
        store.load()
