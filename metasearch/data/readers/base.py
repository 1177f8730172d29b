"""The contract of a reader, and checks that several readers share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from metasearch.data.records import Data
from metasearch.errors import DataError
from metasearch.spec.task import Task


class Reader(Protocol):
    """What the module of a reader offers."""

    def files(self, task: Task) -> list[str]:
        """Return the names of the files that will be opened."""

    def read(self, folder: Path, task: Task) -> Data:
        """Return the data; `DataError` names file and line of what is damaged."""


def pair_languages(task: Task) -> list[tuple[str, str]]:
    """Return the language pairs of a similarity task, in the order of the texts, from its `pairs:`.

    Raises:
        DataError: the task declares none, or one that is not two languages joined by a dash.
    """
    pairs = [tuple(pair.split("-")) for pair in task.pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise DataError(f"task '{task.task}': pairs: expected language pairs such as [ar-ar, ar-en]")
    return [(pair[0], pair[1]) for pair in pairs]


def unique(ids: Sequence[str], path: Path) -> None:
    """Raise `DataError` when an id stands twice."""
    seen: set[str] = set()
    for value in ids:
        if value in seen:
            raise DataError(f"{path}: the id '{value}' stands twice")
        seen.add(value)
