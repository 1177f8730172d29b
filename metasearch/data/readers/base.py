"""Checks that several readers share."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from metasearch.errors import DataError
from metasearch.spec.task import Task


def pair_languages(task: Task) -> list[tuple[str, str]]:
    """Return the language pairs of a similarity task's `pairs:`; `DataError` where one is not two codes and a dash."""
    pairs = [tuple(pair.split("-")) for pair in task.pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise DataError(f"task '{task.task}': pairs: expected language pairs such as [ar-ar, ar-en]")
    return [(first, second) for first, second in pairs]


def require_unique(ids: Iterable[str], path: Path) -> None:
    """Raise `DataError` when an id stands twice."""
    for value, count in Counter(ids).items():
        if count > 1:
            raise DataError(f"{path}: the id '{value}' stands twice")
