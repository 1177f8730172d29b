"""Folders that are made once and kept in the user's cache, each with the hashes of its files."""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from metasearch.errors import EncoderError
from metasearch.files import digest, move, read_bytes, share

VARIABLE = "METASEARCH_CACHE"
"""Environment variable that names another folder for the cache."""

_HASHES = "sha256.json"

log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return the folder of the cache: that of `METASEARCH_CACHE`, or `metasearch` in the user's folder for caches."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metasearch"


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, made where it is missing; made again, and said so, where a file was changed.

    Processes that want it at the same time wait for the first one. A folder is there whole or not at all.

    Args:
        name: name of the folder.
        make: writes into an empty folder, beside which it may leave nothing.

    Raises:
        EncoderError: the cache cannot be written.
    """
    folder = cache_folder() / name
    if intact(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{name}.lock")):
            if not intact(folder):
                _make(folder, make)
    except OSError as error:
        raise EncoderError(
            f"the cache {folder.parent} cannot be written: {error.strerror or error}; free space there, or set "
            f"{VARIABLE} to another folder"
        ) from error
    return folder


def kept() -> list[Path]:
    """Return the folders that are in the cache; one whose name has more after its own was left by a stopped process."""
    place = cache_folder()
    return sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


def _make(folder: Path, make: Callable[[Path], None]) -> None:
    if folder.exists():
        log.warning("%s was changed or is not whole: it is made again", folder)
        shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as place:
        new = Path(place) / folder.name
        new.mkdir()
        make(new)
        (new / _HASHES).write_text(json.dumps(_hashes(new), indent=2), encoding="utf-8")
        share(new)
        move(new, folder)


def intact(folder: Path) -> bool:
    """Return whether the files of a folder are those that were made."""
    try:
        known = json.loads(read_bytes(folder / _HASHES))
        return bool(known == _hashes(folder))
    except (OSError, ValueError):
        return False


def _hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file but the list of hashes itself, by its path in the folder."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _HASHES:
            hashes[path.relative_to(folder).as_posix()] = digest(path)
    return hashes
