"""Users' own data as JSON lines: `LL.jsonl` a language for retrieval, `LL-LL.jsonl` a pair for similarity.

The fields are those of `metasearch.data.readers._rows`; the embedded benchmark is an example.
"""

from collections.abc import Iterator
from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import json_of, lines_of
from metasearch.data.readers import _rows
from metasearch.data.records import Data
from metasearch.errors import DataError


def files(task: Task) -> list[str]:
    """Return one file name a language, or a language pair."""
    return _rows.files(task, ".jsonl")


def read(folder: Path, task: Task) -> Data:
    """Read all files of a task; `DataError` names file and line of a damaged one."""
    return _rows.read(folder, task, ".jsonl", _lines)


def _lines(path: Path) -> Iterator[tuple[int, _rows.Row]]:
    for number, line in enumerate(lines_of(path), 1):
        if blank(line):
            continue
        row = json_of(line, path, number)
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: expected an object in braces, got {line[:40]}")
        yield number, row
