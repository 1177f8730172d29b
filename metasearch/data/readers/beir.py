"""BEIR folders: `corpus.jsonl`, `queries.jsonl` and graded relevance judgements in `qrels/`.

Rows of the corpus are `{"_id": ..., "title": ..., "text": ...}`, rows of queries `{"_id": ..., "text": ...}`; both may
also be Parquet, or a folder of shards. Judgements are `qrels/SPLIT.tsv` with a header, `query-id, corpus-id, score`, or
TREC files, `query 0 document relevance`. Rows without a field `language` are in the one language of the task.

The whole corpus is in the pool of every part. A task with folds `none` reads the judgements of `test`, one with folds
`given` reads `train`, `dev` and `test`, and one with `kfold` reads all.

Judgements count as in trec_eval: a repeated one counts once, and contradictory grades are an error. A relevant document
that is missing, or has no text, counts as never found. A query that is missing, or has no text, is skipped. The log
counts all of these, which occur in published benchmarks such as ArguAna and FiQA.
"""

import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metasearch.config.languages import parse_tag
from metasearch.config.task import Task
from metasearch.data.formats.blank import blank
from metasearch.data.formats.rows import Row, missing_column, read_rows
from metasearch.data.formats.text_files import strip_text, suffix_of, text_lines
from metasearch.data.languages import detect_all
from metasearch.data.readers import joined
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import DataError

CORPUS = "corpus.jsonl"
_SPLITS = {"none": ("test",), "given": ("train", "dev", "test"), "kfold": ()}
_JUDGED = (".tsv", ".txt", ".trec", ".qrels", ".jsonl", ".parquet")

log = logging.getLogger(__name__)


Pair = tuple[str, str]
"""Ids of a query and a document."""


@dataclass
class JudgedText:
    """A query or a document; the language is empty until it is detected, and the text where it shows nothing."""

    place: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The relevance of a document for a query; grade 0 is not relevant."""

    place: str
    split: str
    query: str
    document: str
    grade: float


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
            shown = f"{title or ''} {text or ''}"
            shown = "" if blank(shown) else strip_text(shown, f"{row.place}: text")
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


# Judgements become retrieval data.


def judged_data(
    labels: Iterable[Judgement],
    queries: Mapping[str, JudgedText],
    corpus: Mapping[str, JudgedText],
    languages: Sequence[str],
    name: str,
    splits: Sequence[str] = (),
    ignore_identical_ids: bool = False,
) -> RetrievalData:
    """Return the queries that have a relevant document, and all documents with a text; arguments as `read_folder`.

    `DataError` where grades contradict each other, a query is of two splits, or no judged query or document is there.
    """
    queries, corpus = _with_text(queries, "queries", name), _with_text(corpus, "documents", name)
    graded = _asked(_distinct(labels, name), queries, name)
    _require_one_split(graded.values(), splits)
    missing = _missing(graded, corpus, name)
    if ignore_identical_ids:
        missing |= {pair: label for pair, label in graded.items() if pair[0] == pair[1]}
    answers: dict[str, list[str]] = {}
    for (query, document), label in graded.items():
        if label.grade and (query, document) not in missing:
            answers.setdefault(document, []).append(query)
    _complete([*queries.values(), *corpus.values()], languages, name)
    answered = {query for (query, _), label in graded.items() if label.grade}
    if graded and not answered:
        place = next(iter(graded.values())).place
        raise DataError(f"{place}: no grade is above 0: no document answers any query")
    if left := len({query for query, _ in graded} - answered):
        log.info("%s: skipped queries without a relevant document: %d", name, left)
    questions = [Question(uid, each.language, each.text, uid) for uid, each in queries.items() if uid in answered]
    candidates = [
        Candidate(uid, each.language, each.text, own[0] if own else "", tuple(own), each.text)
        for uid, each in corpus.items()
        for own in [answers.get(uid, [])]
    ]
    if not splits:
        questions = list(joined(questions, candidates).questions)
    everywhere = tuple(replace(candidate, group="") for candidate in candidates)
    return RetrievalData(
        tuple(questions),
        everywhere,
        {query: label.split for (query, _), label in graded.items()} if len(splits) > 1 else {},
        grades={pair: label.grade for pair, label in graded.items() if label.grade != 1 and pair not in missing},
        missing={pair: label.grade for pair, label in missing.items() if label.grade},
        ignore_identical_ids=ignore_identical_ids,
    )


def _with_text(texts: Mapping[str, JudgedText], what: str, name: str) -> dict[str, JudgedText]:
    kept = {uid: each for uid, each in texts.items() if each.text}
    if left := len(texts) - len(kept):
        first = next(each.place for each in texts.values() if not each.text)
        log.info("%s: skipped %s without text: %d, the first in %s", name, what, left, first)
    return kept


def _distinct(labels: Iterable[Judgement], name: str) -> dict[Pair, Judgement]:
    """Return the judgements by pair; `DataError` where one has two grades."""
    found: dict[Pair, Judgement] = {}
    repeated: list[str] = []
    for label in labels:
        first = found.setdefault((label.query, label.document), label)
        if first is label:
            continue
        if first.grade != label.grade:
            raise DataError(
                f"{label.place}: query '{label.query}' and document '{label.document}' have the grade {label.grade:g}, "
                f"and {first.grade:g} in {first.place}"
            )
        repeated.append(label.place)
    if repeated:
        log.info("%s: repeated judgements, which count once: %d, the first in %s", name, len(repeated), repeated[0])
    return found


def _asked(graded: Mapping[Pair, Judgement], queries: Mapping[str, JudgedText], name: str) -> dict[Pair, Judgement]:
    """Return the judgements of queries that are there."""
    kept = {pair: label for pair, label in graded.items() if pair[0] in queries}
    left = [label for pair, label in graded.items() if pair[0] not in queries]
    if left:
        if not kept:
            raise DataError(f"{left[0].place}: there is no query '{left[0].query}' in the queries")
        log.info(
            "%s: skipped judgements of queries that are missing or have no text: %d, the first in %s (query '%s')",
            name, len(left), left[0].place, left[0].query,
        )  # fmt: skip
    return kept


def _missing(graded: Mapping[Pair, Judgement], corpus: Mapping[str, JudgedText], name: str) -> dict[Pair, Judgement]:
    """Return the judgements of documents that are not in the corpus."""
    missing = {pair: label for pair, label in graded.items() if pair[1] not in corpus}
    if missing:
        first = next(iter(missing.values()))
        if len(missing) == len(graded):
            raise DataError(f"{first.place}: there is no document '{first.document}' in the corpus")
        log.info(
            "%s: judged documents that are missing or have no text: %d, the first in %s (document '%s'); "
            "relevant ones, which no search finds: %d",
            name, len(missing), first.place, first.document, sum(label.grade > 0 for label in missing.values()),
        )  # fmt: skip
    return missing


def _require_one_split(labels: Iterable[Judgement], splits: Sequence[str]) -> None:
    split_of: dict[str, Judgement] = {}
    for label in labels:
        first = split_of.setdefault(label.query, label)
        if splits and first.split != label.split:
            raise DataError(f"{label.place}: query '{label.query}' is of split '{first.split}', too, by {first.place}")


def _complete(texts: Sequence[JudgedText], languages: Sequence[str], name: str) -> None:
    """Give every text a language, as the task writes it."""
    lacking = [each for each in texts if not each.language]
    if len(languages) == 1:
        tags = dict.fromkeys((each.text for each in lacking), languages[0])
    elif lacking:
        tags = detect_all([each.text for each in lacking], languages)
        log.info("%s: languages detected: %s", name, ", ".join(sorted(set(tags.values()))))
    for each in lacking:
        each.language = tags[each.text]
    written = {parse_tag(language): language for language in languages}
    for each in texts:
        each.language = written.get(each.language, each.language)
