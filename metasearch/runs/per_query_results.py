"""Per-query results of an evaluation, for comparisons without another run.

One file for each task, encoder and split, `queries/<task>.<label>.<split>.npz` in a run folder: compressed arrays and,
as bytes of JSON, the texts behind them. No pickle is written or read.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, RunFolderError
from metasearch.io import atomic_write, read_bytes

FORMAT = "metasearch queries 1"
DEPTH = 20
"""Depth of stored rankings, of language bias, and of mAP@20."""

_SAFE = " ,+"
"""Characters of a file's name besides letters, digits and `_.-~`; a label may be a path, or in any script."""

Cell = tuple[str, str, str]
"""Pool, question language (or language pair) and candidate language, as in a `Score`."""


@dataclass(frozen=True, slots=True)
class Text:
    """A question or a candidate, as a report shows it."""

    id: str
    language: str
    text: str


@dataclass(frozen=True)
class Ranking:
    """A ranking over the multilingual pool.

    N questions in all languages, C candidates, M relevant candidates for all questions in a row.

    Attributes:
        questions: N questions, languages in alphabetical order.
        candidates: C candidates, in the order that breaks ties.
        languages: L languages of the candidates, in alphabetical order.
        offsets: question i has the relevant candidates `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`.
        relevant: index of each relevant candidate, per question in rank order, `(M,)`.
        ranks: rank of each relevant candidate, from 1, `(M,)`.
        top: indices of the highest ranked candidates, `(N, K)`.
        scores: scores of the highest ranked candidates, `(N, K)`.
    """

    questions: tuple[Text, ...]
    candidates: tuple[Text, ...]
    languages: tuple[str, ...]
    offsets: NDArray[np.int64]
    relevant: NDArray[np.int64]
    ranks: NDArray[np.int64]
    top: NDArray[np.int64]
    scores: NDArray[np.float32]


_ARRAYS = ("offsets", "relevant", "ranks", "top", "scores")


@dataclass(frozen=True)
class QueryResults:
    """Evaluation results by question.

    Attributes:
        units: question ids in a cell, in their order, `(N,)`; equal ids in two cells are translations of each
            other. For similarity the rows, for translation the pairs.
        columns: name and cell → a value for each of its questions, `(N,)`. The name is a measure such as `map@20`; a
            correlation has no value of a question, there the names are `predicted` and `gold`.
        ranking: ranking of a retrieval task's first multilingual pool; None without such a pool.
        articles: id of a question → its article. What is not listed, such as the rows of similarity, is one of its own.
    """

    units: Mapping[Cell, tuple[str, ...]] = field(default_factory=dict)
    columns: Mapping[tuple[str, *Cell], NDArray[np.float64]] = field(default_factory=dict)
    ranking: Ranking | None = None
    articles: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Write the file, whole or not at all."""
        header: dict[str, Any] = {
            "format": FORMAT,
            "facts": dict(facts),
            "units": [[*cell, list(ids)] for cell, ids in self.units.items()],
            "columns": [list(key) for key in self.columns],
            "articles": dict(self.articles),
        }
        arrays = {f"column{i}": values for i, values in enumerate(self.columns.values())}
        if self.ranking:
            for side in ("questions", "candidates"):
                header[side] = [[t.id, t.language, t.text] for t in getattr(self.ranking, side)]
            header["languages"] = list(self.ranking.languages)
            arrays |= {name: _narrow(getattr(self.ranking, name)) for name in _ARRAYS}
        # A text of a data file may hold half a surrogate pair, which JSON can express and plain UTF-8 cannot.
        encoded = json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
        # Into memory first: `np.savez` on a path could leave half a file, and would add a suffix to `.new`.
        buffer = io.BytesIO()
        np.savez_compressed(buffer, about=np.frombuffer(encoded, dtype=np.uint8), **arrays)  # type: ignore[arg-type]
        atomic_write(path, buffer.getvalue())


def query_results_path(run: Path, task: str, label: str, split: str) -> Path:
    """Return the path to an encoder's per-query results in a run folder, by label, on a part of a task."""
    return run / "queries" / f"{quote(task, safe=_SAFE)}.{quote(label, safe=_SAFE)}.{split}.npz"


def load(path: Path) -> tuple[QueryResults, dict[str, Any]]:
    """Return the results by question, and the facts that were written with them."""
    try:
        content = read_bytes(path)
    except FileNotFoundError:
        raise RunFolderError(f"{path}: the results of each question are missing") from None
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(file["about"].tobytes())
            written = header["format"]
            results = (_read(file, header), header["facts"]) if written == FORMAT else None
    except Exception as error:  # a damaged archive raises anything: zlib.error, RuntimeError, MemoryError ...
        why = str(error) or type(error).__name__
        raise DataError(f"{path}: damaged, or not a file of per-query results ({why})") from None
    if results is None:
        raise DataError(f"{path}: its format is '{written}'; this version reads '{FORMAT}'")
    return results


def _read(file: Any, header: Mapping[str, Any]) -> QueryResults:
    # A question is asked in many cells: its id is held once, and so are the ids of cells with the same questions.
    interned: dict[Any, Any] = {}
    units = {}
    for pool, language, inside, names in header["units"]:
        ids = tuple(interned.setdefault(unit, unit) for unit in names)
        units[pool, language, inside] = interned.setdefault(ids, ids)
    columns = {tuple(key): file[f"column{i}"] for i, key in enumerate(header["columns"])}
    ranking = None
    if "questions" in header:
        questions, candidates = (tuple(Text(*row) for row in header[side]) for side in ("questions", "candidates"))
        indices: dict[str, Any] = {name: file[name].astype(np.int64) for name in _ARRAYS if name != "scores"}
        ranking = Ranking(questions, candidates, tuple(header["languages"]), **indices, scores=file["scores"])
    return QueryResults(units, columns, ranking, header["articles"])


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers, none below 0, in the narrowest type that holds them; other values unchanged."""
    if values.dtype.kind not in "iu" or values.size == 0:
        return values
    return values.astype(np.min_scalar_type(int(values.max())))
