"""Arrays in a safetensors file, cached by a key."""

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from metasearch.errors import RunFolderError
from metasearch.io import atomic_write, cached, intact

_FILE = "arrays.safetensors"

LoadedArrays = Mapping[str, NDArray[Any]]

log = logging.getLogger(__name__)


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
