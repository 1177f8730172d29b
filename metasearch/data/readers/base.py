"""The contract of a reader, and what all readers share: opening text, and turning scores and pairs into records."""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from metasearch.data.packed import not_utf8
from metasearch.data.records import Data
from metasearch.errors import DataError
from metasearch.spec.task import Task

GOLD_MAX = 5.0
"""Gold similarity goes from 0 to 5 in SemEval files; records hold it divided by this."""


class Reader(Protocol):
    """What the module of a reader offers."""

    def files(self, task: Task) -> list[str]:
        """Return the names of the files that will be opened."""

    def read(self, folder: Path, task: Task) -> Data:
        """Return the data; `DataError` names file and line of what is damaged."""


def text_of(path: Path) -> str:
    """Return a file's text without its byte-order mark; `DataError` when it is no UTF-8 or cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def json_of(text: str, path: Path, line: int = 1) -> Any:
    """Return what a JSON text says; `DataError` names file and line where it is no JSON.

    Args:
        text: the JSON.
        path: of the file.
        line: of the file on which the text begins.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{line + error.lineno - 1}: not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{line}: not readable JSON: {error}") from None


def csv_of(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and columns of each row; `DataError` names file and line where it is no CSV."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num or 1}: not CSV: {error}") from None


def lines_of(path: Path) -> list[str]:
    """Return a file's lines without line ends; only a line feed ends a line, and a last empty line is dropped."""
    lines = [line.removesuffix("\r") for line in text_of(path).split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines


def gold(text: str, path: Path, line: int) -> float:
    """Return a score written as 0 to 5, scaled to 0 to 1."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not 0.0 <= score <= GOLD_MAX:
        raise DataError(f"{path}:{line}: expected a score from 0 to 5, got '{text}'")
    return score / GOLD_MAX


def pair_languages(task: Task) -> list[tuple[str, str]]:
    """Return the language pairs of a similarity task, in the order of the texts, from its `pairs:`.

    Raises:
        DataError: the task declares none, or one that is not two languages joined by a dash.
    """
    pairs = [tuple(pair.split("-")) for pair in task.pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise DataError(f"task '{task.task}': pairs: expected language pairs such as [ar-ar, ar-en]")
    return [(pair[0], pair[1]) for pair in pairs]


def nonempty(value: str | None, what: str, path: Path, line: int) -> str:
    """Return a text that must not be empty, stripped."""
    if value is None or not value.strip():
        raise DataError(f"{path}:{line}: expected {what}, got nothing")
    return value.strip()


def unique(ids: Sequence[str], path: Path) -> None:
    """Raise `DataError` when an id stands twice."""
    seen: set[str] = set()
    for value in ids:
        if value in seen:
            raise DataError(f"{path}: the id '{value}' stands twice")
        seen.add(value)
