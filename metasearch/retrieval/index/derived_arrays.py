"""What is computed from an index and kept in its folder: one set of arrays, which can be deleted at any time."""

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
    """Return the arrays that were kept; None where there are none of this key, or they are damaged."""
    try:
        stored = ArrayFile(**json.loads(read_bytes(folder / f"{key}.json")))
        check(folder, stored, "")
        return open_arrays(folder, stored, wanted, "").arrays
    except (OSError, ValueError, TypeError, RunFolderError):
        return None


def keep(folder: Path, key: str, arrays: LoadedArrays, otherwise: str) -> None:
    """Keep arrays in the place of what was kept before; where that cannot be, say so and what is done `otherwise`."""
    try:
        with held(folder, f"{folder}: another process writes it", _PATIENCE):
            stored = write(folder, arrays)
            atomic_write(folder / f"{key}.json", json.dumps({"name": stored.name, "size": stored.size}))
            for path in folder.iterdir():
                if path.name not in (".lock", f"{key}.json", stored.path(folder).name):
                    path.unlink()
    except (RunFolderError, OSError) as error:
        log.warning("%s; %s", error, otherwise)
