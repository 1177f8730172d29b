"""Finds the folder that holds a task's files, or says where to get them; fetches data sets of the Hugging Face hub."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from metasearch.config import registry
from metasearch.config.task import Task
from metasearch.errors import DataError, HubError, first_line
from metasearch.io import near

VARIABLE = "METASEARCH_DATA"
_DEPTH = 3

HUB = "hub:"
_TEXT = (".csv", ".tsv", ".jsonl", ".txt")
_FILES = ["*.parquet", *(f"*{suffix}{packed}" for suffix in _TEXT for packed in ("", ".gz"))]


def locate(task: Task, declared_in: Path, expected: Sequence[str], source: str | None = None) -> Path:
    """Return the folder with all expected files, or most of them if the task is `partial`.

    Looks in `source`, a folder or a hub name of the user's, else beside the task's declaration, else in
    `METASEARCH_DATA`; each time in the folder itself and up to three levels below it.
    """
    names = ", ".join(expected[:3]) + (", ..." if len(expected) > 3 else "")
    advice = f"Get it from {task.source.url} (licence: {task.source.licence}); expected is a folder with {names}"
    if source is not None:
        root, origin = fetch(source) if is_hub_name(source) else Path(source), f"--data {source}"
    elif task.data:
        root, origin = (declared_in.parent / task.data).resolve(), f"data: {task.data} in {declared_in}"
    elif os.environ.get(VARIABLE):
        root, origin = Path(os.environ[VARIABLE]), f"{VARIABLE}={os.environ[VARIABLE]}"
    else:
        raise DataError(f"task '{task.name}' needs data: pass --data DIR or set {VARIABLE}.\n{advice}")
    # pathlib raises an error for a name that is too long.
    if not os.path.isdir(root):
        raise DataError(f"{origin}: no such folder.\n{advice}")
    folder = max(_folders(root), key=lambda each: len(_present(each, expected)))
    missing = sorted(set(expected) - _present(folder, expected), key=expected.index)
    if len(missing) == len(expected):
        raise DataError(f"{origin}: no files of task '{task.name}'{near(folder / missing[0]) or '.'}\n{advice}")
    if missing and not task.partial:
        raise DataError(f"{folder}: missing {', '.join(missing)}{near(folder / missing[0]) or '.'}\n{advice}")
    return folder


def _present(folder: Path, expected: Sequence[str]) -> set[str]:
    """Return the expected names that are in a folder."""
    listed = set(_list(folder))
    return {name for name in expected if name in listed or os.path.exists(folder / name)}


def _list(folder: Path) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK) else []


def _folders(root: Path) -> Iterator[Path]:
    """The folder and those below it, shallow ones first (`max` keeps the first of equals)."""
    level = [root]
    for _ in range(_DEPTH + 1):
        yield from level
        # Sorted, since folders come in an order of the file system's own, and the first of equals is taken.
        below = (folder / name for folder in level for name in _list(folder) if not name.startswith("."))
        level = sorted(path for path in below if os.path.isdir(path))


# The Hugging Face hub.


def is_hub_name(source: object) -> bool:
    """Return whether a source is a name such as `hub:mteb/nfcorpus`."""
    return isinstance(source, str) and source.startswith(HUB)


def absolute(source: str) -> str:
    """Return the absolute path of a local source; a name of the hub stays."""
    return source if is_hub_name(source) else str(Path(source).resolve())


def absolute_encoder(name: str) -> str:
    """Return the name of an encoder that means the same from every folder."""
    return absolute(name) if name not in registry.names("encoders") and Path(name).is_dir() else name


def require_hub_cache(name: str) -> None:
    """Raise `HubError` where the user has no home, in which the hub's library would make a folder `~` here."""
    from huggingface_hub import constants

    if constants.HF_HUB_CACHE.startswith("~"):
        raise HubError(f"{name}: this user has no home for files of the hub; set HF_HOME to a folder")


def fetch(name: str) -> Path:
    """Return the local path of `hub:ORG/NAME`, or of a file or folder in it: `hub:org/name/data/train.parquet`."""
    from huggingface_hub import snapshot_download  # takes a second, which other data need not wait for
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    require_hub_cache(name)
    org, _, rest = name.removeprefix(HUB).partition("/")
    dataset, _, inside = rest.partition("/")
    try:
        # Only the named part: a data set may have a folder for each of a thousand language pairs.
        wanted = [inside, *(f"{inside}/{name}" for name in _FILES)] if inside else _FILES
        folder = Path(snapshot_download(f"{org}/{dataset}", repo_type="dataset", allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise HubError(f"{name}: {first_line(error)}") from None
    if not (folder / inside).exists():
        raise HubError(f"{name}: data set {org}/{dataset} has no rows in '{inside}'")
    return folder / inside
