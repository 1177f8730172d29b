"""Finds the folder that holds a task's files, or says where to get them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.hub import fetch, is_hub_name
from metasearch.errors import DataError

VARIABLE = "METASEARCH_DATA"
_DEPTH = 3


def locate(task: Task, declared_in: Path, expected: Sequence[str], data: str | None = None) -> Path:
    """Return the folder with all expected files, or most of them if the task is `partial`.

    Looks in `data` where the user named a folder, else beside the task's declaration, else in `METASEARCH_DATA`; each
    time in the folder itself and up to three levels below it.
    """
    names = ", ".join(expected[:3]) + (", ..." if len(expected) > 3 else "")
    source = f"Get it from {task.source.url} (licence: {task.source.licence}); expected is a folder with {names}"
    if data is not None:
        root, origin = fetch(data) if is_hub_name(data) else Path(data), f"--data {data}"
    elif task.data:
        root, origin = (declared_in.parent / task.data).resolve(), f"data: {task.data} in {declared_in}"
    elif os.environ.get(VARIABLE):
        root, origin = Path(os.environ[VARIABLE]), f"{VARIABLE}={os.environ[VARIABLE]}"
    else:
        raise DataError(f"task '{task.task}' needs data: pass --data DIR or set {VARIABLE}.\n{source}")
    # pathlib raises an error for a name that is too long.
    if not os.path.isdir(root):
        raise DataError(f"{origin}: no such folder.\n{source}")
    folder = max(_folders(root), key=lambda each: len(_present(each, expected)))
    missing = sorted(set(expected) - _present(folder, expected), key=expected.index)
    if len(missing) == len(expected):
        raise DataError(f"{origin}: no files of task '{task.task}'.\n{source}")
    if missing and not task.partial:
        raise DataError(f"{folder}: missing {', '.join(missing)}.\n{source}")
    return folder


def find_file(folder: Path, name: str) -> Path:
    """Return the file of a name below a folder; language tags in it may have any case, and `_` for `-`.

    A file with exactly this name comes first. If there is no such file, the path with this name is returned.
    """
    path = folder / name
    found = sorted(each for each in _list(path.parent) if _fold(each) == _fold(path.name))
    if path.name in found or not found:
        return path
    if len(found) > 1:
        raise DataError(f"{path.parent}: {' and '.join(found)} both stand for {path.name}; remove one of them")
    return path.with_name(found[0])


def _present(folder: Path, expected: Sequence[str]) -> set[str]:
    """Return the expected names that are in a folder."""
    listed = set(map(_fold, _list(folder)))
    return {name for name in expected if _fold(name) in listed or os.path.exists(folder / name)}


def _list(folder: Path) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK) else []


def _fold(name: str) -> str:
    return name.lower().replace("_", "-")


def _folders(root: Path) -> Iterator[Path]:
    """The folder and those below it, shallow ones first (`max` keeps the first of equals)."""
    level = [root]
    for _ in range(_DEPTH + 1):
        yield from level
        # Sorted, since folders come in an order of the file system's own, and the first of equals is taken.
        below = (folder / name for folder in level for name in _list(folder) if not name.startswith("."))
        level = sorted(path for path in below if os.path.isdir(path))
