"""Arrays in safetensors files: named by their SHA-256 and memory-mapped, or cached by a key."""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from metasearch.errors import RunFolderError
from metasearch.io import atomic_write, cached, digest, intact

SUFFIX = ".safetensors"
_TYPES = {"I8": np.int8, "U64": np.uint64, "F16": np.float16, "F32": np.float32}
_LENGTH = 8
"""Bytes of the number before the header: the length of the header."""

_FILE = f"arrays{SUFFIX}"

LoadedArrays = Mapping[str, NDArray[Any]]

log = logging.getLogger(__name__)


def write(folder: Path, arrays: LoadedArrays) -> Path:
    """Write arrays to a file in a folder, atomically; `RunFolderError` on failure."""
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    path = folder / f"{hashlib.sha256(content).hexdigest()}{SUFFIX}"
    atomic_write(path, content)
    return path


def open_arrays(path: Path) -> LoadedArrays:
    """Return the arrays of a file that `write` wrote; they survive its removal. `RunFolderError` if it is damaged."""
    if digest(path) != path.stem:
        raise RunFolderError(f"{path}: checksum mismatch: the SHA-256 of the file is not its name")
    content = np.memmap(path, np.uint8, "r")
    start = _LENGTH + int.from_bytes(content[:_LENGTH].tobytes(), "little")
    header = json.loads(content[_LENGTH:start].tobytes())
    return {name: _view(content[start:], header[name]) for name in header}


def _view(content: NDArray[np.uint8], facts: Mapping[str, Any]) -> NDArray[Any]:
    begin, end = facts["data_offsets"]
    return np.asarray(content[begin:end]).view(_TYPES[facts["dtype"]]).reshape(facts["shape"])


def derive(folder: Path, key: str, compute: Callable[[], LoadedArrays]) -> LoadedArrays:
    """Return the arrays of a key from a cache of one set; missing or damaged ones are computed, and replace others."""
    if intact(folder / key):
        # Another process may replace it in between.
        with suppress(FileNotFoundError):
            return dict(load_file(folder / key / _FILE))
    arrays = compute()
    try:
        place = cached(key, lambda new: atomic_write(new / _FILE, save(dict(arrays))), folder)
        for other in folder.iterdir():
            if other.is_dir() and other != place:
                shutil.rmtree(other, ignore_errors=True)
    except (OSError, RunFolderError) as error:
        log.warning("%s; it is computed again the next time", error)
    return arrays
