"""Users' own data as CSV with a header: `LL.csv` a language for retrieval, `LL-LL.csv` a pair for similarity.

Columns are `question,answer[,context][,id][,article]`, or `text1,text2,score[,group]`.
"""

from collections.abc import Iterator
from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.formats.text_files import column_names, csv_rows, with_line_feeds
from metasearch.data.readers import _rows
from metasearch.data.records import Data
from metasearch.errors import DataError

_OTHER_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def files(task: Task) -> list[str]:
    """Return one file name a language, or a language pair."""
    return _rows.files(task, ".csv")


def read(folder: Path, task: Task) -> Data:
    """Read all files of a task; `DataError` names file and line of a damaged one."""
    return _rows.read(folder, task, ".csv", _lines)


def _lines(path: Path) -> Iterator[tuple[int, _rows.Row]]:
    header: list[str] | None = None
    for line, row in csv_rows(path):
        if header is None:
            header = column_names(row, path, line)
            if len(header) == 1 and (other := next((mark for mark in _OTHER_MARKS if mark in header[0]), None)):
                raise DataError(
                    f"{path}:{line}: expected columns between commas, got {_OTHER_MARKS[other]} in the header"
                )
        elif row and len(row) != len(header):
            raise DataError(f"{path}:{line}: expected {len(header)} columns, got {len(row)}")
        elif row:
            cells = map(with_line_feeds, row)
            yield line, {name: cell for name, cell in zip(header, cells, strict=True) if cell.strip()}
