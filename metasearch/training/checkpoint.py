"""Checkpoints that are complete or missing: no pickle, a hash over everything, and an atomic swap.

A checkpoint is a folder with `weights.safetensors`, `optimizer.safetensors`, `best.safetensors` (the weights with the
best dev score), `learner.safetensors` and `state.json`, which holds the hashes of the others and its own. It is written
beside the last one and renamed. The last one stays as `checkpoint.previous`, in case the newest is damaged or the
machine stops between the two renames.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from metasearch.errors import RunFolderError, first_line, quoted
from metasearch.io import digest, move, read_bytes, share, sync, write_error

log = logging.getLogger(__name__)

Tensors = Mapping[str, Tensor]
_FILES = ("weights", "optimizer", "best", "learner")
_FOLDERS = ("checkpoint", "checkpoint.previous", "checkpoint.new")
"""The latest checkpoint, the one before it, and one that is being written."""
_STATE = "state.json"
_SCHEMA = 1


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to resume: tensors by name, and counters and scores as JSON.

    `best` is empty before the first evaluation; `learner` is the learner's state beside its weights, mostly empty.
    """

    weights: Tensors
    optimizer: Tensors
    best: Tensors
    learner: Tensors
    state: Mapping[str, Any]


class CheckpointStore:
    """Store a run's latest checkpoint in `<run>/checkpoint`, and the previous one."""

    def __init__(self, run: Path) -> None:
        self.folder, self._previous, self._new = (run / name for name in _FOLDERS)

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; `RunFolderError` where it cannot be written, and the last one is untouched."""
        try:
            shutil.rmtree(self._new, ignore_errors=True)
            self._new.mkdir(parents=True)
            _write(self._new, checkpoint)
            self._swap()
        except Exception as error:  # safetensors raises its own error type for a full disk
            shutil.rmtree(self._new, ignore_errors=True)
            size = sum(tensor.nbytes for name in _FILES for tensor in getattr(checkpoint, name).values())
            raise write_error(self.folder, error, size) from error

    def load(self) -> Checkpoint | None:
        """Return the latest complete checkpoint, or None; a line says so if it is not the newest.

        `RunFolderError` if all checkpoints are damaged.
        """
        problems: dict[Path, str] = {}
        # Only the previous one is there if the machine stopped between the two renames of `_swap`.
        for folder in filter(Path.is_dir, (self.folder, self._previous)):
            try:
                found = _read(folder)
            except ValueError as error:
                problems[folder] = str(error)
                continue
            for problem in problems.values():
                log.warning("%s; continuing from the previous one, at outer step %s", problem, found.state["step"])
            return found
        if not problems:
            return None
        which = "And so is the one before it. " if len(problems) > 1 else ""
        folders = " and ".join(map(quoted, problems))
        raise RunFolderError(f"{next(iter(problems.values()))}. {which}To start again without it, delete {folders}")

    def _swap(self) -> None:
        # A folder cannot be renamed to one that has files in it, so the last one makes way first. Where there is none,
        # a stop between the two renames left `previous` as the only one: it stays until the new one is in place.
        if self.folder.exists():
            shutil.rmtree(self._previous, ignore_errors=True)
            move(self.folder, self._previous)
        move(self._new, self.folder)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    hashes = {}
    for name in _FILES:
        path = folder / f"{name}.safetensors"
        # safetensors refuses tensors that are not contiguous.
        save_file({key: value.contiguous() for key, value in getattr(checkpoint, name).items()}, path)
        # On the disk before the rename, or after a power cut the new name could have files without content.
        sync(path)
        hashes[name] = digest(path)
    # Last, as it holds the hashes of the others.
    content = {"schema": _SCHEMA, "state": checkpoint.state, "sha256": hashes}
    path = folder / _STATE
    path.write_text(json.dumps({**content, "hash": _hash_of(content)}), encoding="utf-8")
    sync(path)
    share(folder)
    sync(folder)


def _read(folder: Path) -> Checkpoint:
    """Return a checkpoint; `ValueError` names the file that is damaged."""
    path = folder / _STATE
    try:
        stored = json.loads(read_bytes(path))
        if (schema := stored.get("schema")) != _SCHEMA:
            raise ValueError(f"it has schema {schema}; this version of metasearch reads schema {_SCHEMA}")
        if stored.pop("hash") != _hash_of(stored):
            raise ValueError("checksum mismatch")
        hashes, state = stored["sha256"], stored["state"]
        tensors = {}
        for name in _FILES:
            path = folder / f"{name}.safetensors"
            if digest(path) != hashes[name]:
                raise ValueError("checksum mismatch")
            tensors[name] = load_file(path)
    except Exception as error:  # whatever is wrong with it, the file is damaged
        raise ValueError(f"{path}: the checkpoint is damaged: {first_line(error)}") from error
    return Checkpoint(**tensors, state=state)


def _hash_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a value's JSON, independent of key order."""
    # By way of JSON, in which a tuple is a list and every key a text.
    text = json.dumps(json.loads(json.dumps(content)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
