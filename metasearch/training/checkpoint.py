"""Checkpoints that are whole or not there: no pickle, a hash for each file, and an atomic swap.

A checkpoint is a folder with `weights.safetensors`, `optimizer.safetensors`, `best.safetensors` (the weights with the
best dev score), `learner.safetensors` and `state.json`. It is written beside the last one and takes its place by
renaming; if the machine stops between the two renames, the last one is still there under `checkpoint.previous`.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from metasearch.errors import RunFolderError
from metasearch.runs.folder import CHECKPOINT_FOLDERS

Tensors = Mapping[str, Tensor]
_FILES = ("weights", "optimizer", "best", "learner")


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to go on as if it had never stopped.

    Attributes:
        weights: of the learner, by name.
        optimizer: state of the outer optimiser, by name.
        best: weights with the best dev score; empty before the first evaluation.
        learner: what the learner keeps beside its weights, by name; most keep nothing.
        state: counters and scores, as JSON.
    """

    weights: Tensors
    optimizer: Tensors
    best: Tensors
    learner: Tensors
    state: Mapping[str, Any]


class CheckpointStore:
    """Keeps the latest checkpoint of a run in `<run>/checkpoint`."""

    def __init__(self, run: Path) -> None:
        self.folder, self._previous, self._new = (run / name for name in CHECKPOINT_FOLDERS)

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; `RunFolderError` where it cannot be written, and the last one is untouched."""
        try:
            shutil.rmtree(self._new, ignore_errors=True)
            self._new.mkdir(parents=True)
            hashes = {}
            for name in _FILES:
                path = self._new / f"{name}.safetensors"
                # safetensors refuses tensors that are not contiguous.
                save_file({key: value.contiguous() for key, value in getattr(checkpoint, name).items()}, path)
                # On the disk before the rename, or after a power cut the new name could have files without content.
                hashes[name] = _sync(path)
            # Last, as it holds the hashes of the others.
            state = self._new / "state.json"
            state.write_text(json.dumps({"state": checkpoint.state, "sha256": hashes}), encoding="utf-8")
            _sync(state)
            self._swap()
        except Exception as error:  # safetensors raises its own error type for a full disk
            shutil.rmtree(self._new, ignore_errors=True)
            raise RunFolderError(f"{self.folder}: the checkpoint cannot be written: {error}") from error

    def load(self) -> Checkpoint | None:
        """Return the latest checkpoint, or None; `RunFolderError` names the file that is damaged."""
        # Only the previous one is there if the machine stopped between the two renames of `_swap`.
        folder = next((folder for folder in (self.folder, self._previous) if folder.is_dir()), None)
        return None if folder is None else _read(folder)

    def _swap(self) -> None:
        # A folder cannot be renamed to one that has files in it, so the last one makes way first. Where there is none,
        # a stop between the two renames left `previous` as the only one: it stays until the new one is in place.
        if self.folder.exists():
            shutil.rmtree(self._previous, ignore_errors=True)
            self.folder.rename(self._previous)
        self._new.rename(self.folder)
        shutil.rmtree(self._previous, ignore_errors=True)


def _read(folder: Path) -> Checkpoint:
    path = folder / "state.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        hashes, state = stored["sha256"], stored["state"]
        tensors = {}
        for name in _FILES:
            path = folder / f"{name}.safetensors"
            if _hash(path) != hashes[name]:
                raise ValueError("its content is not what was written")
            tensors[name] = load_file(path)
    except Exception as error:  # whatever is wrong with it, the file is damaged
        raise RunFolderError(
            f"{path}: the checkpoint is damaged: {error}. To begin again without it, delete {folder}"
        ) from error
    return Checkpoint(**tensors, state=state)


def _sync(path: Path) -> str:
    """Make sure that a file is on the disk, and return its hash."""
    # Open for writing, without which some systems refuse to flush a file.
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    return _hash(path)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
