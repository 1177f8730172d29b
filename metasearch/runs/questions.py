"""What an evaluation keeps of every question, so that nothing has to be run again to compare or to explain.

One file for each task, encoder and part of the data, `queries/<task>.<label>.<split>.npz` in a run folder: compressed
arrays and, as bytes of JSON, the texts that they speak of. No pickle is written or read.
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
from metasearch.runs.files import write_whole

FORMAT = "metasearch queries 1"

_SAFE = " ,+"
"""What may stand in a file's name besides letters, digits and `_.-~`; a label may be a path, or in any script."""

Cell = tuple[str, str, str]
"""Pool, language of the questions (or the language pair), language of the candidates: as in a `Score`."""


@dataclass(frozen=True, slots=True)
class Text:
    """A question or a candidate, as a report shows it."""

    id: str
    language: str
    text: str


@dataclass(frozen=True)
class Ranking:
    """Where the multilingual pool was searched: what ranked where.

    N questions of all languages, C candidates, M relevant candidates of all questions in a row.

    Attributes:
        questions: N of them, languages in alphabetical order.
        candidates: C of them, in the order that breaks ties.
        languages: of the candidates, L of them in alphabetical order.
        offsets: question i has the relevant candidates `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`.
        relevant: index of each relevant candidate, those of a question in the order of their ranks, `(M,)`.
        ranks: its rank from 1, `(M,)`.
        above: how many candidates of each language that are not relevant rank above it, `(M, L)`.
        top: the highest ranked candidates, `(N, K)`.
        scores: their scores, `(N, K)`.
    """

    questions: tuple[Text, ...]
    candidates: tuple[Text, ...]
    languages: tuple[str, ...]
    offsets: NDArray[np.int64]
    relevant: NDArray[np.int64]
    ranks: NDArray[np.int64]
    above: NDArray[np.int64]
    top: NDArray[np.int64]
    scores: NDArray[np.float32]


_ARRAYS = ("offsets", "relevant", "ranks", "above", "top", "scores")


@dataclass(frozen=True)
class Kept:
    """What is kept of an evaluation.

    Attributes:
        units: ids of the questions of a cell, in their order, `(N,)`; equal ids in two cells are translations of each
            other. For similarity the rows, for translation the pairs.
        columns: name and cell → a value for each of its questions, `(N,)`. The name is a measure such as `map@20`; a
            correlation has no value of a question, there the names are `predicted` and `gold`.
        ranking: of a retrieval task with the multilingual pool.
    """

    units: Mapping[Cell, tuple[str, ...]] = field(default_factory=dict)
    columns: Mapping[tuple[str, *Cell], NDArray[np.float64]] = field(default_factory=dict)
    ranking: Ranking | None = None

    def save(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Write the file, whole or not at all.

        Args:
            path: of the file; its folder is made.
            facts: what it is of, such as task, data fingerprint, fold, split and learner.

        Raises:
            RunFolderError: it cannot be written; a file that was there stays.
        """
        about: dict[str, Any] = {
            "format": FORMAT,
            "facts": dict(facts),
            "units": [[*cell, list(ids)] for cell, ids in self.units.items()],
            "columns": [list(key) for key in self.columns],
        }
        arrays = {f"column{i}": values for i, values in enumerate(self.columns.values())}
        if self.ranking:
            for side in ("questions", "candidates"):
                about[side] = [[t.id, t.language, t.text] for t in getattr(self.ranking, side)]
            about["languages"] = list(self.ranking.languages)
            arrays |= {name: _small(getattr(self.ranking, name)) for name in _ARRAYS}
        # A text of a data file may hold half a surrogate pair, which JSON can say and plain UTF-8 cannot.
        said = json.dumps(about, ensure_ascii=False).encode("utf-8", "surrogatepass")
        whole = io.BytesIO()
        np.savez_compressed(whole, about=np.frombuffer(said, dtype=np.uint8), **arrays)  # type: ignore[arg-type]
        write_whole(path, whole.getvalue())


def kept_at(run: Path, task: str, label: str, split: str) -> Path:
    """Return where a run folder has what was kept for an encoder, by its label, on a part of a task."""
    return run / "queries" / f"{quote(task, safe=_SAFE)}.{quote(label, safe=_SAFE)}.{split}.npz"


def load(path: Path) -> tuple[Kept, dict[str, Any]]:
    """Return what was kept, and the facts that were written with it.

    Raises:
        RunFolderError: there is no such file, or it cannot be opened.
        DataError: it is cut off, damaged, of another format, or something else.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise RunFolderError(f"{path}: what was kept of each question is not there") from None
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            found = about["format"]
            kept = _read(file, about) if found == FORMAT else None
    except Exception as error:  # a damaged archive raises what it likes: zlib.error, RuntimeError, MemoryError ...
        why = str(error) or type(error).__name__
        raise DataError(f"{path}: damaged, or not a file of kept questions ({why})") from None
    if kept is None:
        raise DataError(f"{path}: its format is '{found}'; this version reads '{FORMAT}'")
    return kept, about["facts"]


def _read(file: Any, about: Mapping[str, Any]) -> Kept:
    # A question is asked in many cells: its id is held once, and so are the ids of cells with the same questions.
    once: dict[Any, Any] = {}
    units = {}
    for pool, language, inside, listed in about["units"]:
        ids = tuple(once.setdefault(unit, unit) for unit in listed)
        units[pool, language, inside] = once.setdefault(ids, ids)
    columns = {tuple(key): file[f"column{i}"] for i, key in enumerate(about["columns"])}
    for (name, *cell), values in columns.items():
        if values.shape != (len(units[tuple(cell)]),):  # type: ignore[index]
            raise ValueError(f"{name} of {' '.join(cell)} has not as many values as questions")
    ranking = None
    if "questions" in about:
        questions, candidates = (tuple(Text(*row) for row in about[side]) for side in ("questions", "candidates"))
        wide: dict[str, Any] = {name: file[name].astype(np.int64) for name in _ARRAYS if name != "scores"}
        ranking = Ranking(questions, candidates, tuple(about["languages"]), **wide, scores=file["scores"])
        _check(ranking)
    if not isinstance(about["facts"], dict):
        raise TypeError("its facts are no mapping")
    return Kept(units, columns, ranking)


def _check(ranking: Ranking) -> None:
    """Raise `ValueError` where the parts of a ranking do not belong together."""
    asked, pool, found = len(ranking.questions), len(ranking.candidates), len(ranking.relevant)
    deep = ranking.top.shape[-1]
    expected = {
        "offsets": (asked + 1,),
        "ranks": (found,),
        "above": (found, len(ranking.languages)),
        "top": (asked, deep),
        "scores": (asked, deep),
    }
    for name, shape in expected.items():
        if (given := getattr(ranking, name).shape) != shape:
            raise ValueError(f"{name} has shape {given}, not {shape}")
    offsets = ranking.offsets
    if offsets[0] != 0 or offsets[-1] != found or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets do not part {found} relevant candidates among the questions")
    for name in ("relevant", "top"):
        indices = getattr(ranking, name)
        if indices.size and not 0 <= indices.min() <= indices.max() < pool:
            raise ValueError(f"{name} names a candidate that is not among the {pool}")


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers, none below 0, in the narrowest type that holds them; other values as they are."""
    if values.dtype.kind not in "iu" or values.size == 0:
        return values
    return values.astype(np.min_scalar_type(int(values.max())))
