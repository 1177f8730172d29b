"""The files of an index: arrays in one file that is named by its hash, and what is said where one is damaged."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import load

from metasearch.data.formats import arrays
from metasearch.data.formats.arrays import NAME, SUFFIX, ArrayFile, ArraySpec, MappedArrays
from metasearch.errors import RunFolderError
from metasearch.io import NEW, read_bytes

SEGMENTS, LOCATIONS, OWN = "segments", "locations", "arrays"
"""Folders of an index."""
_REMEDY = (
    "the index is damaged. Put the file back, or call metasearch index with its documents again, "
    "which makes anew what is damaged"
)
_OWN_REMEDY = (
    "the index is damaged. All of its vectors were made with what this file has, so it cannot be made again alone. "
    "Put the file back, or make the index in another folder"
)


def open_arrays(folder: Path, stored: ArrayFile, wanted: ArraySpec) -> MappedArrays:
    """Return a file of arrays, mapped into memory; `RunFolderError` as `formats.arrays.open_arrays`."""
    return arrays.open_arrays(folder, stored, wanted, _REMEDY)


def check(folder: Path, stored: ArrayFile) -> None:
    """Raise `RunFolderError` where a file is not, to the bit, what was written."""
    arrays.check(folder, stored, _OWN_REMEDY if folder.name == OWN else _REMEDY)


def problem(folder: Path, stored: ArrayFile) -> str:
    """Return what `check` says of a file, or nothing."""
    try:
        check(folder, stored)
    except RunFolderError as error:
        return str(error)
    return ""


def read_own(folder: Path, stored: ArrayFile | None) -> dict[str, NDArray[Any]]:
    """Return the caller's own arrays of an index, in memory; `RunFolderError` where their file is damaged."""
    if stored is None:
        return {}
    check(folder / OWN, stored)
    found: dict[str, NDArray[Any]] = load(read_bytes(stored.path(folder / OWN)))
    return found


def clean(folder: Path, named: Collection[str]) -> None:
    """Remove the files of arrays of an index that are not among the named ones."""
    for kind in (SEGMENTS, LOCATIONS, OWN):
        for path in (folder / kind).glob(f"*{SUFFIX}*"):
            name, _, rest = path.name.partition(".")
            if NAME.fullmatch(name) and (name not in named or rest.endswith(NEW)):
                # Some systems keep what a reader has open; the next writer tries again.
                with suppress(OSError):
                    path.unlink()


def damaged(path: Path, what: str) -> RunFolderError:
    """Return the error of a file that is not what was written, with what to do."""
    return arrays.damaged(path, what, _REMEDY)
