"""Files that are there whole or not at all, and folders that one process has to itself."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from metasearch.errors import RunFolderError

NEW = ".new"
"""Suffix of a file while it is written."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all; its folder is made.

    Raises:
        RunFolderError: it cannot be written; a file that was there stays as it was.
    """
    write_all({path: content})


def write_all(contents: Mapping[Path, str | bytes]) -> None:
    """Write files that belong together: first all beside their places, then each in its place; folders are made.

    Raises:
        RunFolderError: one cannot be written, such as on a full disk; the files that were there stay as they were.
    """
    beside = {path: path.with_name(f"{path.name}{NEW}") for path in contents}
    path = Path()
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside[path].open("wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                # On the disk before the rename, or a crash of the machine may leave an empty file in its place.
                os.fsync(file.fileno())
        for path, new in beside.items():
            new.replace(path)
    except OSError as error:
        for new in beside.values():
            # A file that is in its place has no copy beside it any more.
            with suppress(OSError):
                new.unlink()
        raise RunFolderError(f"{path} cannot be written: {error.strerror}") from None


@contextmanager
def held(folder: Path, busy: str, patience: float = 0) -> Iterator[None]:
    """Make a folder and keep other processes out of it; the lock goes with the process, however that ends.

    Args:
        folder: to have alone.
        busy: what is said where another process has it.
        patience: seconds to wait for that process to end.

    Raises:
        RunFolderError: another process has it, or it cannot be written.
    """
    lock = FileLock(folder / ".lock", timeout=patience)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise RunFolderError(busy) from None
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()
