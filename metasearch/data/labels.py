"""Labelled rows become retrieval data.

| column | value |
|---|---|
| `query`, `document` | two texts; a list of texts has several documents |
| `page`, or `url`, `path` | instead of `document`: the name of a page in the documents of `metasearch tune` |
| `language` | tag of both, such as `de`; or `query_language` and `document_language`; detected if missing |
| `relevance` | a number from 0; 0 labels one that is no answer, greater numbers are gains; 1 without the column |
| `clicks` | of pages without `relevance`: how often the page was chosen; 1 without the column, 0 is no label |
| `id` | name of the query: rows with one id are about one query, in several languages its translations |
| `group` | what must not be parted by a split |

Without an id, rows with the same text in the same language are about one query. Rows of one group, one query, one
relevant document, or texts that differ only in case, punctuation and white space are on the same side of every split.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metasearch.config.languages import UNKNOWN
from metasearch.data.formats.blank import comparison_key
from metasearch.data.label_rows import Label, read_labels
from metasearch.data.languages import detect_all
from metasearch.data.locate import fetch, is_hub_name
from metasearch.data.readers import beir, joined
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import ConfigError, DataError

log = logging.getLogger(__name__)


def load_labels(
    rows: Any,
    columns: Mapping[str, str] | None = None,
    languages: Sequence[str] = (),
    ignore_identical_ids: bool = False,
    named: bool = False,
) -> RetrievalData:
    """Return the data of labelled rows: dicts, a pandas `DataFrame`, a `datasets.Dataset`, or a path.

    A path is a file of rows (CSV, TSV, JSON lines, Parquet), a folder of `datasets`, or a BEIR folder. Each row is a
    query and a document, which answers it unless `relevance` is 0. The table above has the columns.

    Args:
        rows: at least one; or a name such as `hub:org/name`.
        columns: name of a value → name of its column, such as `{"query": "question", "document": "answer"}`.
        languages: tags to choose from where a language is detected; by default those that are frequent in the rows.
        ignore_identical_ids: of a BEIR folder: a document with the id of a query is the query itself, as in ArguAna,
            and is not ranked for it.
        named: documents may be names of pages: paths, addresses, or ids of rows. A candidate then has the name as its
            text, until `metasearch.search.documents.joining` finds the passages of the page.

    Raises:
        DataError: a row or a column is missing or wrong; the message names file and line.
        ConfigError: a language has to be detected, and py3langid does not know it.

    Example:
        >>> rows = [{"query": "Where is my parcel?", "document": "Open your orders.", "language": "en"}]
        >>> load_labels(rows).describe()
        '1 questions, 1 candidates in 1 languages'
    """
    if is_hub_name(rows):
        rows = fetch(rows)
    if isinstance(rows, str | Path) and not columns and os.path.exists(Path(rows) / beir.CORPUS):
        return beir.read_folder(Path(rows), languages, ignore_identical_ids=ignore_identical_ids)
    if ignore_identical_ids:
        raise ConfigError(f"{_name(rows)}: ignore_identical_ids: only documents of a BEIR folder have ids")
    labels, notes = read_labels(rows, dict(columns or {}), named, _name(rows))
    _complete_languages(labels, languages, notes)
    data = _data(labels, notes)
    for note in notes:
        log.info("%s: %s", _name(rows), note)
    return replace(data, notes=tuple(notes))


def _name(rows: Any) -> str:
    return str(rows) if isinstance(rows, str | Path) else "rows"


# Languages that no column gives are detected.


def _complete_languages(labels: Sequence[Label], languages: Sequence[str], notes: list[str]) -> None:
    """Give rows both languages; detected ones are noted."""
    lacking = [label.query for label in labels if not (label.query_language or label.language)]
    for label in labels:
        if label.named:  # its passages have languages of their own
            label.document_language = UNKNOWN
    lacking += [label.document for label in labels if not (label.document_language or label.language)]
    tags = detect_all(lacking, languages) if lacking else {}
    if tags:
        found = ", ".join(f"{tag} {count}" for tag, count in Counter(tags.values()).most_common())
        notes.append(f"languages detected: {found}; if they are wrong, add a column 'language' with tags such as de")
    for label in labels:
        label.query_language = label.query_language or label.language or tags[label.query]
        label.document_language = label.document_language or label.language or tags[label.document]


# Labels become questions and candidates.


class _Collector:
    """Collects labels; equal documents are one candidate, and equal queries one question."""

    def __init__(self, labels: Sequence[Label]) -> None:
        self.given = {label.id for label in labels if label.id}
        self.ids: dict[tuple[str, str], str] = {}
        """Language and text of a query → its id."""
        for label in labels:
            if label.id:
                self.ids.setdefault((label.query_language, label.query), label.id)
        self.questions: dict[tuple[str, str], tuple[Question, str]] = {}
        """Id and language → the question, and its first place."""
        self.candidates: dict[tuple[str, str], Candidate] = {}
        """Language and text → the candidate."""
        self.places: dict[str, str] = {}
        """Id of a candidate → its first place."""
        self.relevant: set[str] = set()
        """Ids of candidates that answer something."""
        self.judged: dict[tuple[str, str], tuple[float, str]] = {}
        """Ids of question and candidate → relevance, and the place that says so."""
        self.clicks: set[tuple[str, str]] = set()
        """Ids of question and candidate whose relevance is a number of clicks."""
        self.rows: set[tuple[str, str, str]] = set()
        """Id and language of a query, and the candidate."""
        self.repeated: list[str] = []
        """Places of rows that repeat one."""

    def add(self, label: Label, group: str) -> None:
        uid = label.id or self._made_id(label.query_language, label.query)
        question = Question(uid, label.query_language, label.query, group)
        first, place = self.questions.setdefault((uid, label.query_language), (question, label.place))
        if first.text != label.query:
            raise DataError(
                f"{label.place}: query: '{label.query[:40]}' has the id '{uid}' of '{first.text[:40]}' in {place}; "
                f"the queries of one id and language ({label.query_language}) are one text"
            )
        where = (label.document_language, label.document)
        fresh = Candidate(f"d{len(self.candidates) + 1}", *where, group)
        candidate = self.candidates.setdefault(where, fresh)
        self.places.setdefault(candidate.id, label.place)
        if label.relevance and candidate.id not in self.relevant:
            # A document belongs to the group of a query that it answers.
            self.candidates[where] = replace(candidate, group=group)
            self.relevant.add(candidate.id)
        # A translated query has the documents of the original, which repeats nothing.
        if (row := (uid, label.query_language, candidate.id)) in self.rows:
            self.repeated.append(label.place)
        self.rows.add(row)
        if label.clicked:
            self.clicks.add((uid, candidate.id))
        grade, said = self.judged.setdefault((uid, candidate.id), (label.relevance, label.place))
        if grade != label.relevance:
            raise DataError(
                f"{label.place}: relevance: got {label.relevance:g}, and {said} has {grade:g} for the same query and "
                "document"
            )

    def _made_id(self, language: str, text: str) -> str:
        if (language, text) not in self.ids:
            number = len(self.ids) + 1
            while f"q{number}" in self.given:
                number += 1
            self.given.add(f"q{number}")
            self.ids[language, text] = f"q{number}"
        return self.ids[language, text]


def _data(labels: Sequence[Label], notes: list[str]) -> RetrievalData:
    corpus = _Collector(labels)
    groups = [f"group {label.group}" if label.group else f"row {i}" for i, label in enumerate(labels, 1)]
    same: list[tuple[str, str]] = []
    first: dict[str, str] = {}
    for label, group in zip(labels, groups, strict=True):
        corpus.add(label, group)
        for text in (label.query, label.document) if label.relevance else (label.query,):
            same.append((first.setdefault(comparison_key(text) or text, group), group))
    if corpus.repeated:
        notes.append(f"repeated rows, which count once: {len(corpus.repeated)}, the first in {corpus.repeated[0]}")
    answers: dict[str, list[str]] = {}
    for (uid, candidate), (grade, _) in corpus.judged.items():
        if grade:
            answers.setdefault(candidate, []).append(uid)
    answered = {uid for ids in answers.values() for uid in ids}
    questions = [question for question, _ in corpus.questions.values() if question.id in answered]
    candidates = [replace(each, answers=tuple(answers.get(each.id, ()))) for each in corpus.candidates.values()]
    if len(questions) < len(corpus.questions):
        place = next(place for question, place in corpus.questions.values() if question.id not in answered)
        lacking = len(corpus.questions) - len(questions)
        notes.append(f"skipped queries without a relevant document: {lacking}, the first in {place}")
    if not questions:
        raise DataError(f"{labels[0].place}: no row has a relevance above 0: no document answers any query")
    grades = {pair: grade for pair, (grade, _) in corpus.judged.items() if grade != 1}
    return replace(
        joined(questions, candidates, same), grades=grades, places=corpus.places, clicks=frozenset(corpus.clicks)
    )
