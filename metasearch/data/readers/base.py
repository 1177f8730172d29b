"""Checks that several readers share."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import ErrorDetails

from metasearch.errors import DataError
from metasearch.formats.blank import blank
from metasearch.spec.task import Task


def _shown(text: str) -> str:
    if held := blank(text):
        raise ValueError(f"expected a text, got {held}")
    return text


Shown = Annotated[str, AfterValidator(_shown)]
"""A text that is not blank, as it stands."""
Text = Annotated[Shown, StringConstraints(strip_whitespace=True)]
"""The same without white space at both ends."""


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


def problem(error: ErrorDetails) -> str:
    """Return what is wrong with a value that was checked, in the words of a message after its place."""
    message = error["msg"].removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}"
