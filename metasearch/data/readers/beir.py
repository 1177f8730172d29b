"""BEIR folders: `corpus.jsonl`, `queries.jsonl` and graded relevance judgements in `qrels/`.

Rows of the corpus are `{"_id": ..., "title": ..., "text": ...}`, rows of queries `{"_id": ..., "text": ...}`; both may
also be Parquet, or a folder of shards. Judgements are `qrels/SPLIT.tsv` with a header, `query-id, corpus-id, score`, or
TREC files, `query 0 document relevance`. Rows without a field `language` are in the one language of the task.

The whole corpus is in the pool of every part. A task with folds `none` reads the judgements of `test`, one with folds
`given` reads `train`, `dev` and `test`, and one with `kfold` reads all.
"""

import logging
import math
import os
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from metasearch.config.languages import parse_tag
from metasearch.config.task import Task
from metasearch.data.formats.rows import Row, missing_column, read_rows
from metasearch.data.formats.text_files import suffix_of, text_lines, text_or_nothing
from metasearch.data.judged import JudgedText, Judgement, judged_data
from metasearch.data.records import RetrievalData
from metasearch.errors import DataError

CORPUS = "corpus.jsonl"
_SPLITS = {"none": ("test",), "given": ("train", "dev", "test"), "kfold": ()}
_JUDGED = (".tsv", ".txt", ".trec", ".qrels", ".jsonl", ".parquet")

log = logging.getLogger(__name__)


def files(task: Task) -> list[str]:
    """Return the names of the two files and the folder."""
    return [CORPUS, "queries.jsonl", "qrels"] if task.kind == "retrieval" else []


def read(folder: Path, task: Task) -> RetrievalData:
    """Read the judgements needed for a task's folds; `DataError` names file and line."""
    return read_folder(folder, task.languages, _SPLITS[task.folds.method], task.ignore_identical_ids)


def read_folder(
    folder: Path, languages: Sequence[str] = (), splits: Sequence[str] = (), ignore_identical_ids: bool = False
) -> RetrievalData:
    """Return the queries that have a relevant document, and all documents.

    Args:
        folder: of the files.
        languages: language of rows that name none, or languages to detect it among; by default any.
        splits: whose judgements are read; with several, each query is of one. By default all, and in no split.
        ignore_identical_ids: a document with the id of a query is the query itself, and is not ranked for it.
    """
    labels = list(_judgements(folder, splits))
    queries, corpus = _texts(folder, "queries", {label.query for label in labels}), _texts(folder, "corpus")
    if not ignore_identical_ids and (shared := [uid for uid in queries if uid in corpus]):
        log.info(
            "%s: queries with the id of a document: %d, the first '%s'; with its text, too: %d. If these documents are "
            "the queries themselves, as in ArguAna, set ignore_identical_ids",
            folder, len(shared), shared[0], sum(queries[uid].text == corpus[uid].text for uid in shared),
        )  # fmt: skip
    return judged_data(labels, queries, corpus, languages, str(folder), splits, ignore_identical_ids)


def _texts(folder: Path, name: str, wanted: Set[str] | None = None) -> dict[str, JudgedText]:
    """Return a file's texts by id, in order; only those with a wanted id, if any."""
    found: dict[str, JudgedText] = {}
    for row in read_rows(_table(folder, name)):
        uid = str(_value(row, "_id", "id"))
        if uid in found:
            raise DataError(f"{row.place}: duplicate id '{uid}', first in {found[uid].place}")
        if wanted is None or uid in wanted:
            title, text = row.values.get("title"), row.values.get("text")
            if text is None and "text" not in row.values:
                raise missing_column(row.place, "text", row.values)
            shown = text_or_nothing(f"{title or ''} {text or ''}", f"{row.place}: text")
            found[uid] = JudgedText(row.place, shown, _language(row))
    return found


def _table(folder: Path, name: str) -> Path:
    known = [folder / f"{name}{suffix}" for suffix in (".jsonl", ".jsonl.gz", ".parquet", "")]
    return next((path for path in known if os.path.exists(path)), known[0])


def _value(row: Row, *names: str) -> Any:
    """Return the first value among some columns of a row."""
    found = next((row.values[name] for name in names if row.values.get(name) is not None), None)
    if found is None:
        if row.values.keys().isdisjoint(names):
            raise missing_column(row.place, names[0], row.values)
        raise DataError(f"{row.place}: {names[0]}: expected a value, got nothing")
    return found


def _language(row: Row) -> str:
    written = row.values.get("language") or row.values.get("lang") or ""
    try:
        return parse_tag(str(written)) if written else ""
    except ValueError as error:
        raise DataError(f"{row.place}: language: {error}") from None


def _judgements(folder: Path, splits: Sequence[str]) -> Iterator[Judgement]:
    """Yield the judgements of splits; irrelevant documents have grade 0, as negative numbers in TREC files."""
    inside = folder / "qrels"
    names = sorted(os.listdir(inside)) if os.path.isdir(inside) else []
    known = {name.partition(".")[0]: inside / name for name in names if suffix_of(Path(name)) in _JUDGED}
    chosen = {name: known.get(name) for name in splits} if splits else dict(known)
    for split, path in chosen.items():
        if path is None:
            have = ", ".join(each.name for each in known.values()) or "nothing"
            raise DataError(f"{folder / 'qrels' / split}.tsv: no such file; there is {have}")
        yield from _read_judged(path, split)


def _read_judged(path: Path, split: str) -> Iterator[Judgement]:
    """Yield the judgements in a file with a header, or in a TREC file."""
    plain = suffix_of(path) not in (".jsonl", ".parquet")
    if plain and "query-id" not in next(text_lines(path), (1, ""))[1]:
        for number, line in text_lines(path):
            place, cells = f"{path}:{number}", line.split()
            if len(cells) != 4:
                raise DataError(f"{place}: expected query, 0, document and relevance; got {line.strip()[:40]}")
            yield Judgement(place, split, cells[0], cells[2], _grade(cells[3], place))
        return
    for row in read_rows(path):
        query, document, grade = (_value(row, name) for name in ("query-id", "corpus-id", "score"))
        yield Judgement(row.place, split, str(query), str(document), _grade(grade, row.place))


def _grade(written: Any, place: str) -> float:
    try:
        grade = float(written)
    except (TypeError, ValueError, OverflowError):
        grade = math.nan
    if not math.isfinite(grade):
        raise DataError(f"{place}: score: expected a number, got '{str(written)[:40]}'")
    return max(grade, 0.0)
