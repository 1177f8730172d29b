"""The manifest of a prepared corpus: written last, when the corpus is complete."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metasearch.config.base import FrozenConfig
from metasearch.config.corpus import CorpusSettings
from metasearch.data.formats.arrays import ArrayFile
from metasearch.errors import DataError, RunFolderError
from metasearch.io import atomic_write, read_bytes

FILE = "manifest.json"
SHARDS = "shards"
"""Folder of the shards."""
FORMAT = "metasearch corpus"
SCHEMA = 2
"""Changes whenever a corpus that this release writes could not be read by the one before, or the other way round."""
REMEDY = "the corpus is damaged. Put the file back, or prepare the corpus again in another folder"
_SEAL = "sha256"
OF_STAGES = {"max_tokens", "balance", "dev"}
"""Settings of a corpus that are of training; tokens are those of the encoder that is trained."""


class Input(FrozenConfig):
    """A source file: path, bytes and SHA-256."""

    path: str
    size: int
    sha256: str


class PartCounts(FrozenConfig):
    """Line counts for a part; see `metasearch.data.parallel.files.Part`.

    Attributes:
        read: its lines.
        dropped: reason → how many were left out for it.
        pairs: how many are in the corpus; `read` is `pairs` and all of `dropped`.
    """

    paths: tuple[str, ...]
    corpus: str
    language: str
    pivot: str
    read: int
    dropped: Mapping[str, int]
    pairs: int


class ShardCounts(FrozenConfig):
    """A shard: its file, and how many pairs and distinct texts it has."""

    stored: ArrayFile
    pairs: int
    texts: int


class Asked(FrozenConfig):
    """The request for a preparation; equal requests on equal files give equal bits.

    Attributes:
        settings: which pairs are read and how they are cleaned, without what is of stages (`OF_STAGES`).
        across: whether a pair that another file had before is a duplicate, too.
        detect: languages among which that of a text is told; `all`, or empty where it is not told.
        exclude: tasks and files, texts of which are left out → hash of their texts.
        inputs: files that are read.
    """

    settings: CorpusSettings
    across: bool
    detect: tuple[str, ...]
    exclude: Mapping[str, str]
    inputs: tuple[Input, ...]

    def tree(self) -> dict[str, Any]:
        """Return it as JSON."""
        return self.model_dump(mode="json", exclude={"settings": OF_STAGES})


class Manifest(FrozenConfig):
    """What a finished corpus is.

    Attributes:
        asked: how it was made, and of which files.
        parts: in their order, with what became of their lines.
        shards: in their order.
        seal: hash of all this.
    """

    asked: Asked
    parts: tuple[PartCounts, ...]
    shards: tuple[ShardCounts, ...]
    seal: str = ""

    @property
    def pairs(self) -> int:
        """Number of pairs in the whole corpus."""
        return sum(shard.pairs for shard in self.shards)

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all; `RunFolderError` where that fails."""
        write_sealed(folder / FILE, {**self.model_dump(mode="json", exclude={"seal"}), "asked": self.asked.tree()})

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read it.

        Raises:
            DataError: the folder is no prepared corpus, or its preparation is not finished.
            RunFolderError: the manifest is damaged, or of another release's schema.
        """
        path = folder / FILE
        if not path.exists():
            state = "its preparation is not finished" if (folder / "work").exists() else "it is no prepared corpus"
            raise DataError(f"{folder}: {state}: missing {FILE}; see metasearch prepare --help")
        tree, seal = read_sealed(path)
        found = {key: tree[key] for key in ("asked", "parts", "shards")}
        return cls.model_validate({**found, "seal": seal})


def is_prepared(folder: Path) -> bool:
    """Return whether a folder is a prepared corpus, finished or not; a damaged one is, too."""
    for path in (folder / FILE, folder / "work" / "asked.json"):
        # An index has a manifest of this name, too.
        if path.is_file() and f'"format": "{FORMAT}"'.encode() in path.read_bytes()[:100]:
            return True
    return False


def write_sealed(path: Path, tree: Mapping[str, Any]) -> None:
    """Write a value as JSON with its own hash; `RunFolderError` where it cannot be written."""
    whole = {"format": FORMAT, "schema": SCHEMA, **tree}
    atomic_write(path, json.dumps({**whole, _SEAL: _hash(whole)}, ensure_ascii=False, indent=1) + "\n")


def read_sealed(path: Path) -> tuple[dict[str, Any], str]:
    """Return what `write_sealed` wrote, and its hash.

    Raises:
        RunFolderError: the file cannot be read, is not what was written, or is of another release's schema.
    """
    try:
        tree = json.loads(content := read_bytes(path))
        seal = tree.pop(_SEAL)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        tree, seal, content = {}, "", b""
    # The text, too: white space may not differ either, so that no bit is free.
    written = json.dumps({**tree, _SEAL: seal}, ensure_ascii=False, indent=1) + "\n"
    if seal != _hash(tree) or written.encode() != content:
        raise RunFolderError(f"{path}: checksum mismatch: {REMEDY}")
    if (tree.get("format"), tree.get("schema")) != (FORMAT, SCHEMA):
        raise RunFolderError(
            f"{path}: it has schema {tree.get('schema')}, and this release of metasearch reads schema {SCHEMA}; "
            "prepare the corpus again in another folder"
        )
    return tree, seal


def _hash(tree: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(tree, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
