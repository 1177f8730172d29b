"""Where the documents and the encoder of an index are, so that folders can move.

An index names documents relative to a root. It keeps the root as an absolute path and as seen from the folder of the
index: the second one counts where it exists, so that index and documents can move together. An index of an earlier
release has no root, and names documents as they were given.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT, ENCODER = "root", "encoder_beside"
"""Keys in the state of an index."""


def root_facts(root: Path, index: Path) -> dict[str, Any]:
    """Return a root as the state of an index keeps it."""
    return {ROOT: {"path": root.as_posix(), "from_index": Path(os.path.relpath(root, index.resolve())).as_posix()}}


def roots(state: Mapping[str, Any], index: Path) -> list[Path]:
    """Return where the root of an index may be, best first; nothing for an index of an earlier release."""
    if ROOT not in state:
        return []
    return [Path(os.path.normpath(index.resolve() / state[ROOT]["from_index"])), Path(state[ROOT]["path"])]


def find_root(state: Mapping[str, Any], index: Path) -> Path | None:
    """Return the root of an index; where none exists, the one that was written."""
    known = roots(state, index)
    return next((root for root in known if root.is_dir()), known[-1] if known else None)


def encoder_facts(name: str, index: Path) -> dict[str, Any]:
    """Return what an index keeps about an encoder in the same folder, as in a tuning: its name there."""
    beside = os.path.isabs(name) and Path(name).parent == index.resolve().parent
    return {ENCODER: Path(name).name if beside else ""}


def find_encoder(state: Mapping[str, Any], index: Path) -> str:
    """Return the encoder of an index: beside the index where it was made so, or by its name."""
    beside = index.resolve().parent / state.get(ENCODER, "")
    return str(beside) if state.get(ENCODER) and beside.is_dir() else str(state["kind"]["encoder"])


def shown(path: Path) -> str:
    """Return a path as a user opens it from the current folder: relative if it is below, else unchanged."""
    with suppress(OSError, ValueError):  # the current folder is gone; the path is not below
        return path.relative_to(Path.cwd()).as_posix()
    return path.as_posix()
