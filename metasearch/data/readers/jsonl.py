"""Users' own data as JSON lines: `LL.jsonl` a language for retrieval, `LL-LL.jsonl` a pair for similarity.

See `metasearch.data.readers._rows` for the fields; the embedded benchmark is an example.
"""

from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.readers import _rows
from metasearch.data.records import Data


def files(task: Task) -> list[str]:
    """Return one file name a language, or a language pair."""
    return _rows.files(task, ".jsonl")


def read(folder: Path, task: Task) -> Data:
    """Read all files of a task; `DataError` names file and line."""
    return _rows.read(folder, task, ".jsonl")
