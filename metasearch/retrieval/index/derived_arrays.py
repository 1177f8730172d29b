"""Arrays computed from an index and cached in its folder: one set, which can be deleted at any time."""

import json
import logging
from pathlib import Path

from metasearch.data.formats.arrays import ArrayFile, ArraySpec, LoadedArrays, check, open_arrays, write
from metasearch.errors import RunFolderError
from metasearch.io import atomic_write, held, read_bytes

_PATIENCE = 600
"""Seconds to wait for another process that keeps the same."""

log = logging.getLogger(__name__)


def kept(folder: Path, key: str, wanted: ArraySpec) -> LoadedArrays | None:
    """Return the cached arrays; None if missing, under another key, or damaged."""
    try:
        stored = ArrayFile(**json.loads(read_bytes(folder / f"{key}.json")))
        check(folder, stored, "")
        return open_arrays(folder, stored, wanted, "").arrays
    except (OSError, ValueError, TypeError, RunFolderError):
        return None


def keep(folder: Path, key: str, arrays: LoadedArrays, otherwise: str) -> None:
    """Replace the cached arrays; on failure, log it and the consequence `otherwise`."""
    try:
        with held(folder, f"{folder}: another process writes it", _PATIENCE):
            stored = write(folder, arrays)
            atomic_write(folder / f"{key}.json", json.dumps({"name": stored.name, "size": stored.size}))
            for path in folder.iterdir():
                if path.name not in (".lock", f"{key}.json", stored.path(folder).name):
                    path.unlink()
    except (RunFolderError, OSError) as error:
        log.warning("%s; %s", error, otherwise)
