"""Folders and files that a command writes: checked before work begins, and written completely or not at all.

A folder is written beside its place, as `<name>.partial`, and takes its name when it is complete.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metasearch.errors import MetasearchError, RunFolderError
from metasearch.io import move, share, write_error


def claim(folder: Path) -> None:
    """Raise `RunFolderError` unless a folder is new or empty and can be written; makes nothing."""
    with _disk_errors(folder):
        _check_writable(folder)
        if folder.exists() and any(folder.iterdir()):
            raise RunFolderError(f"{folder} exists already; choose another folder with -o")
        partial = _partial(folder)
        if partial.exists():
            raise RunFolderError(
                f"{partial} exists: another process writes {folder}, or one was killed; delete it if none runs"
            )


def claim_file(path: Path) -> None:
    """Raise `RunFolderError` unless a file is new and can be written; makes nothing."""
    with _disk_errors(path):
        _check_writable(path.parent)
        if path.exists():
            raise RunFolderError(f"{path} exists already; choose another file with -o")


_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors that are none of a disk."""


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """Give a new folder to write to, which becomes `folder` on success and is removed on failure.

    `RunFolderError` where the folder is neither new nor empty, or cannot be written.
    """
    claim(folder)
    partial = _partial(folder)
    with _disk_errors(folder):
        # An error if another call made it since `claim`.
        partial.mkdir(parents=True)
    try:
        yield partial
        share(partial)
        move(partial, folder)
    # Ctrl-C too must leave nothing half written.
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        # What writes models raises errors of its own for a full disk.
        if isinstance(error, Exception) and not isinstance(error, (MetasearchError, *_BUGS)):
            raise write_error(folder, error) from error
        raise


def _partial(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.partial")


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Turn a disk error into one that names the path."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror}") from error


def _check_writable(folder: Path) -> None:
    """Raise `OSError` unless a folder, or the nearest one above it that exists, can be written."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{nearest} is a file, not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write to {nearest}")
