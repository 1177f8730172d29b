"""The files of a run: what was asked, what happened, what came out.

config.yaml      the resolved configuration; `--resume` reads it
log.jsonl        one line an outer step or dev score
results.jsonl    one line a score, with versions, seed and data fingerprint
report.md        the table against zero-shot
model/           loads with plain SentenceTransformer
checkpoint/      only while a run is not finished
"""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from metasearch import __version__
from metasearch.config import Declared, RunConfig
from metasearch.data import taskfile
from metasearch.encoders.base import Encoder
from metasearch.engine.checkpoint import CheckpointStore
from metasearch.errors import RunFolderError

_LIBRARIES = ("torch", "transformers", "sentence-transformers", "learn2learn", "numpy")


class _Stored(Declared):
    data_fingerprint: str
    config: RunConfig


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model"
        self.report = path / "report.md"
        self.checkpoints = CheckpointStore(path)

    @classmethod
    def create(cls, path: Path, config: RunConfig, fingerprint: str) -> "RunFolder":
        """Make a new run folder and write its configuration and the fingerprint of its data.

        Raises:
            RunFolderError: it exists and is not empty, or cannot be written.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunFolderError(
                f"{path} exists already; choose another folder with -o, or go on with: metasearch train --resume {path}"
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            tree = {"data_fingerprint": fingerprint, "config": config.model_dump(mode="json")}
            (path / "config.yaml").write_text(taskfile.dump(tree), encoding="utf-8")
        except OSError as error:
            raise RunFolderError(f"{path} cannot be written: {error.strerror}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> tuple["RunFolder", RunConfig, str]:
        """Return an existing run, its configuration and its data's fingerprint; `RunFolderError` when there is none."""
        if not (path / "config.yaml").is_file():
            raise RunFolderError(f"{path} is no run folder: it has no config.yaml")
        stored = taskfile.read(path / "config.yaml", _Stored)
        return cls(path), stored.config, stored.data_fingerprint

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.report.is_file()

    def save_model(self, encoder: Encoder) -> None:
        """Write the encoder to `model/`; `RunFolderError` when there is no room for it."""
        try:
            encoder.save(self.model)
        except Exception as error:  # safetensors raises its own error type for a full disk
            raise RunFolderError(f"{self.model} cannot be written: {error}") from error

    def log(self, event: Mapping[str, Any]) -> None:
        """Append an event to `log.jsonl`."""
        self._append("log.jsonl", [event])

    def add_results(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append scores to `results.jsonl`."""
        self._append("results.jsonl", rows)

    def results(self) -> list[dict[str, Any]]:
        """Return all scores; a last line that was cut off by a crash is left out."""
        path = self.path / "results.jsonl"
        if not path.is_file():
            return []
        rows = []
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            try:
                rows += [json.loads(line)] if line else []
            except json.JSONDecodeError as error:
                if number < len(lines):
                    raise RunFolderError(f"{path}:{number}: not JSON: {error.msg}") from None
        return rows

    def _append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        try:
            with (self.path / name).open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunFolderError(f"{self.path / name} cannot be written: {error.strerror}") from None


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    found = {name: version(name) for name in _LIBRARIES}
    return {"metasearch": __version__, "python": platform.python_version(), **found}
