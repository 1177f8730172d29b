"""Users' own data as CSV with a header: `LL.csv` a language for retrieval, `LL-LL.csv` a pair for similarity.

Columns are `question,answer[,context][,id][,article]`, or `text1,text2,score[,group]`.
"""

from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.readers import jsonl
from metasearch.data.records import Data


def files(task: Task) -> list[str]:
    """Return one file name a language, or a language pair."""
    return jsonl.files(task, ".csv")


def read(folder: Path, task: Task) -> Data:
    """Read all files of a task; `DataError` names file and line."""
    return jsonl.read(folder, task, ".csv")
