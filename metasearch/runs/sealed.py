"""YAML files that end in a hash of themselves: what a run or a study was asked is not changed once it has begun."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from metasearch.errors import RunFolderError
from metasearch.files import write_whole
from metasearch.spec import yaml
from metasearch.spec.declared import Declared

_KEY = "sha256"


class Sealed(Declared):
    """What such a file holds; `sha256` is the hash of all lines before its own, None in files of earlier releases."""

    sha256: str | None = None


Model = TypeVar("Model", bound=Sealed)


def write(path: Path, content: Sealed) -> None:
    """Write a file, whole or not at all, and its hash in the last line; `RunFolderError` where that fails."""
    body = yaml.dump(content.model_dump(mode="json", exclude={_KEY}))
    write_whole(path, f"{body}{_KEY}: {_hash(body)}\n")


def read(path: Path, model: type[Model]) -> Model:
    """Return what a file holds.

    Raises:
        RunFolderError: the file was changed since it was written.
        ConfigError: it cannot be read, or a key is wrong.
    """
    _require_unchanged(path, yaml.tree(path))
    return yaml.read(path, model)


def tree(path: Path) -> Mapping[str, Any]:
    """Return what a file holds, as strings and unchecked; raises what `read` does."""
    found = yaml.tree(path)
    _require_unchanged(path, found)
    return found


def _require_unchanged(path: Path, found: Mapping[str, Any]) -> None:
    if _KEY not in found:
        return
    body, _, _ = path.read_text(encoding="utf-8").rpartition(f"{_KEY}: ")
    if found[_KEY] != _hash(body):
        raise RunFolderError(
            f"{path}: it was changed since it was written, and what it belongs to goes on only as it began. Put the "
            "file back, or begin again in another folder"
        )


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
