"""Builds records from rows of named fields, for users' own data in JSONL or CSV.

Retrieval rows are either paragraphs, `{"sentences": [...], "questions": [{"question": ..., "answer": 0}]}`, in which
every sentence is a candidate, or labelled questions, `{"question": ..., "answer": ...}`, in which every answer is one.
Similarity rows are `{"text1": ..., "text2": ..., "score": 0..5}`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from metasearch.data.readers.base import pair_languages, unique
from metasearch.data.records import Candidate, Data, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.data.text_files import score_of
from metasearch.errors import DataError, nearest
from metasearch.spec.task import Task

Row = Mapping[str, object]
Rows = Iterable[tuple[int, Row]]
"""Line number and fields of each row."""

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Id = Annotated[_Text, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]


def files(task: Task, suffix: str) -> list[str]:
    """Return one file name a language, or a language pair."""
    return [f"{name}{suffix}" for name in (task.languages if task.kind == "retrieval" else task.pairs)]


def read(folder: Path, task: Task, suffix: str, rows_of: Callable[[Path], Rows]) -> Data:
    """Read all files of a task, `rows_of` giving the rows of one."""
    paths = [folder / name for name in files(task, suffix)]
    if task.kind == "retrieval":
        return retrieval((path, path.stem, rows_of(path)) for path in paths)
    pairs = zip(paths, pair_languages(task), strict=True)
    return SimilarityData(tuple(p for path, pair in pairs for p in similarity(path, pair, rows_of(path))))


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Asked(_Row):
    question: _Text
    answer: Annotated[int, Field(ge=0)]
    id: _Id | None = None


class _Paragraph(_Row):
    sentences: Annotated[list[_Text], Field(min_length=1)]
    questions: list[_Asked] = []
    paragraph: _Id | None = None
    article: _Id | None = None


class _Labelled(_Row):
    question: _Text
    answer: _Text
    context: str = ""
    id: _Id | None = None
    article: _Id | None = None


class _Scored(_Row):
    text1: _Text
    text2: _Text
    score: float | str
    group: _Id | None = None


Model = TypeVar("Model", bound=_Row)


def retrieval(sources: Iterable[tuple[Path, str, Rows]]) -> RetrievalData:
    """Return the questions and candidates of all languages.

    Questions with the same id are translations of each other; without ids, row n of every file is.

    Args:
        sources: file, language and rows of each language.

    Raises:
        DataError: a row is damaged; names file, line, field and what was expected.
    """
    corpus = _Corpus()
    for path, language, rows in sources:
        before = len(corpus.questions)
        for number, (line, row) in enumerate(rows, 1):
            if {"sentences", "questions"} & row.keys():
                corpus.add_paragraph(_check(_Paragraph, row, path, line), f"{path}:{line}", language, str(number))
            else:
                corpus.add_labelled(_check(_Labelled, row, path, line), language, str(number))
        if len(corpus.questions) == before:
            raise DataError(f"{path}: expected rows with questions, found none")
        unique([question.id for question in corpus.questions[before:]], path)
    return corpus.data()


def similarity(path: Path, languages: tuple[str, str], rows: Rows) -> list[ScoredPair]:
    """Return the scored pairs of one language pair; `DataError` names file, line and field of a damaged row."""
    pairs: list[ScoredPair] = []
    for number, (line, row) in enumerate(rows, 1):
        pair = _check(_Scored, row, path, line)
        score = score_of(str(pair.score), path, line)
        pairs.append(ScoredPair(path.stem, languages, pair.text1, pair.text2, score, pair.group or f"row-{number}"))
    if not pairs:
        raise DataError(f"{path}: expected rows with text1, text2 and score, found none")
    return pairs


class _Corpus:
    """Collects rows; a text that answers several questions becomes one candidate."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.candidates: dict[tuple[str, ...], Candidate] = {}
        self.paragraphs: set[tuple[str, str]] = set()

    def add_paragraph(self, row: _Paragraph, where: str, language: str, number: str) -> None:
        paragraph = row.paragraph or number
        if (language, paragraph) in self.paragraphs:
            raise DataError(f"{where}: paragraph: the name '{paragraph}' stands twice")
        self.paragraphs.add((language, paragraph))
        group = row.article or paragraph
        answered: list[list[str]] = [[] for _ in row.sentences]
        for i, asked in enumerate(row.questions):
            if asked.answer >= len(row.sentences):
                last = len(row.sentences) - 1
                raise DataError(
                    f"{where}: questions.{i}.answer: expected a sentence number 0 to {last}, got {asked.answer}"
                )
            uid = asked.id or f"{paragraph}-{i + 1}"
            answered[asked.answer].append(uid)
            self.questions.append(Question(uid, language, asked.question, group))
        context = " ".join(row.sentences)
        for i, (sentence, ids) in enumerate(zip(row.sentences, answered, strict=True)):
            uid = f"{language}_{paragraph}_{i}"
            text = f"{sentence} {context}"
            self.candidates[uid,] = Candidate(uid, language, text, group, tuple(ids), sentence)

    def add_labelled(self, row: _Labelled, language: str, number: str) -> None:
        uid = row.id or number
        group = row.article or uid
        self.questions.append(Question(uid, language, row.question, group))
        text = f"{row.answer} {row.context}".strip()
        key = (language, row.article or "", text)
        known = self.candidates.get(key)
        if known is None:
            known = Candidate(f"{language}_{uid}", language, text, group, (), row.answer)
        self.candidates[key] = replace(known, answers=(*known.answers, uid))

    def data(self) -> RetrievalData:
        """Return what was collected, with groups that share a question or an answer made one group."""
        root: dict[str, str] = {}

        def find(group: str) -> str:
            while root.setdefault(group, group) != group:
                group = root[group]
            return group

        group_of: dict[str, str] = {}
        for question in self.questions:
            root[find(question.group)] = find(group_of.setdefault(question.id, question.group))
        for candidate in self.candidates.values():
            for uid in candidate.answers:
                root[find(group_of[uid])] = find(candidate.group)
        return RetrievalData(
            tuple(replace(q, group=find(q.group)) for q in self.questions),
            tuple(replace(c, group=find(c.group)) for c in self.candidates.values()),
        )


def _check(model: type[Model], row: Row, path: Path, line: int) -> Model:
    try:
        return model.model_validate({key: value for key, value in row.items() if value is not None})
    except ValidationError as error:
        # A misspelt field says more than the one that is missing for it.
        first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            hint = nearest(field, model.model_fields) if len(first["loc"]) == 1 else ""
            raise DataError(f"{path}:{line}: {field}: unknown field.{hint}") from None
        raise DataError(f"{path}:{line}: {field}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
