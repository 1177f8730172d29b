"""Arrays computed from an index and cached in its folder: one set, which can be deleted at any time."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from safetensors.numpy import load_file, save_file

from metasearch.data.formats.arrays import LoadedArrays
from metasearch.errors import RunFolderError
from metasearch.io import cached

_FILE = "arrays.safetensors"

log = logging.getLogger(__name__)


def derive(folder: Path, key: str, compute: Callable[[], LoadedArrays]) -> LoadedArrays:
    """Return the arrays of a key from the cache; missing or damaged ones are computed and replace others."""
    try:
        place = cached(key, lambda new: save_file(dict(compute()), new / _FILE), folder)
        for other in folder.iterdir():
            if other.is_dir() and other != place:
                shutil.rmtree(other, ignore_errors=True)
    except RunFolderError as error:
        log.warning("%s; computing without a cache", error)
        return compute()
    arrays: LoadedArrays = load_file(place / _FILE)
    return arrays
