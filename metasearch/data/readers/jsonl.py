"""Users' own data as JSON lines: `LL.jsonl` a language for retrieval, `LL-LL.jsonl` a pair for similarity.

Retrieval rows are either paragraphs, `{"sentences": [...], "questions": [{"question": ..., "answer": 0}]}`, in which
every sentence is a candidate, or labelled questions, `{"question": ..., "answer": ...}`, in which every answer is one.
Similarity rows are `{"text1": ..., "text2": ..., "score": 0..5}`. The embedded benchmark is an example. CSV files have
the same columns in a header, and no rows of paragraphs.
"""

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, StrictInt

from metasearch.config.task import Task
from metasearch.data.formats.rows import Row, read_rows
from metasearch.data.readers import COMPOSED, Model, Text, checked, joined, require_unique
from metasearch.data.records import Candidate, Data, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.data.scored import score_of
from metasearch.errors import DataError

log = logging.getLogger(__name__)

# In Python True is an int.
_Id = Annotated[Text, COMPOSED, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


def files(task: Task, suffix: str = ".jsonl") -> list[str]:
    """Return one file name a language, or a language pair."""
    if task.kind == "similarity":
        return [f"{first}-{second}{suffix}" for first, second in task.language_pairs]
    return [f"{language}{suffix}" for language in task.languages] if task.kind == "retrieval" else []


def read(folder: Path, task: Task, suffix: str = ".jsonl") -> Data:
    """Read all files of a task, of the kind of `suffix`; `DataError` names file, line and field."""
    paths = [folder / name for name in files(task, suffix)]
    if task.kind == "retrieval":
        collector = _Collector(folder)
        for path, language in zip(paths, task.languages, strict=True):
            collector.read(path, language)
        return collector.data()
    pairs: list[ScoredPair] = []
    for path, languages in zip(paths, task.language_pairs, strict=True):
        pairs += _scored_pairs(path, languages)
    return SimilarityData(tuple(pairs))


read_CSV = partial(read, suffix=".csv")
files_CSV = partial(files, suffix=".csv")
"""Users' own data as CSV with a header: `LL.csv` a language for retrieval, `LL-LL.csv` a pair for similarity.

Columns are `question,answer[,context][,id][,article]`, or `text1,text2,score[,group]`.
"""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Asked(_Row):
    question: Text
    answer: Annotated[StrictInt, Field(ge=0)]
    id: _Id | None = None


class _Paragraph(_Row):
    sentences: Annotated[list[Text], Field(min_length=1)]
    questions: list[_Asked] = []
    paragraph: _Id | None = None
    article: _Id | None = None


class _Labelled(_Row):
    question: Text
    answer: Text
    context: str = ""
    id: _Id | None = None
    article: _Id | None = None


class _Scored(_Row):
    text1: Text
    text2: Text
    score: StrictFloat | StrictInt | str
    group: _Id | None = None


def _scored_pairs(path: Path, languages: tuple[str, str]) -> list[ScoredPair]:
    pairs: list[ScoredPair] = []
    for number, row in enumerate(read_rows(path), 1):
        pair = _check(_Scored, row)
        score = score_of(str(pair.score), row.place)
        pairs.append(
            ScoredPair("-".join(languages), languages, pair.text1, pair.text2, score, pair.group or f"row-{number}")
        )
    if not pairs:
        raise DataError(f"{path}: expected rows with text1, text2 and score, found none")
    return pairs


class _Collector:
    """Collects rows; a text that answers several questions becomes one candidate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.questions: list[Question] = []
        self.candidates: dict[tuple[str, ...], tuple[Candidate, list[str], str]] = {}
        """Id of a sentence, or language, article and text of an answer → candidate, the questions that it answers, and
        file and line that it was first read from."""
        self.placed: dict[str, dict[str, str]] = {}
        """Language → questions without an id: their number among others, and the line of each."""

    def read(self, path: Path, language: str) -> None:
        """Read a language; questions with the same id, or without ids of the same row, are translations."""
        before, places, paragraphs = len(self.questions), list[str](), dict[str, str]()
        self.placed[language] = {}
        for number, row in enumerate(read_rows(path), 1):
            if {"sentences", "questions"} & row.values.keys():
                paragraph = _check(_Paragraph, row)
                name = paragraph.paragraph or str(number)
                if (first := paragraphs.setdefault(name, row.place)) != row.place:
                    raise DataError(f"{row.place}: duplicate paragraph '{name}', first in {first}")
                self.add_paragraph(paragraph, row.place, language, name)
            else:
                self.add_labelled(_check(_Labelled, row), row.place, language, str(number))
            places += [row.place] * (len(self.questions) - before - len(places))
        if len(self.questions) == before:
            raise DataError(f"{path}: expected rows with questions, found none")
        require_unique(zip((question.id for question in self.questions[before:]), places, strict=True))

    def add_paragraph(self, row: _Paragraph, where: str, language: str, name: str) -> None:
        group = row.article or name
        # Every sentence is a candidate, also one that answers nothing: those are the distractors.
        answered: list[list[str]] = [[] for _ in row.sentences]
        for i, asked in enumerate(row.questions):
            if asked.answer >= len(row.sentences):
                says = f"expected a sentence number 0 to {len(row.sentences) - 1}, got {asked.answer}"
                raise DataError(f"{where}: questions[{i}].answer: {says}")
            uid = self._id(asked.id, f"{name}-{i + 1}", language, where)
            answered[asked.answer].append(uid)
            self.questions.append(Question(uid, language, asked.question, group))
        context = " ".join(row.sentences)
        for i, (sentence, ids) in enumerate(zip(row.sentences, answered, strict=True)):
            uid = f"{language}_{name}_{i}"
            self.candidates[uid,] = Candidate(uid, language, f"{sentence} {context}", group, (), sentence), ids, where

    def add_labelled(self, row: _Labelled, where: str, language: str, number: str) -> None:
        uid = self._id(row.id, number, language, where)
        group = row.article or uid
        self.questions.append(Question(uid, language, row.question, group))
        text = f"{row.answer} {row.context}".strip()
        candidate = Candidate(f"{language}_{uid}", language, text, group, (), row.answer)
        # By article, too: the same answer in two articles must not join their groups.
        _, answered, _ = self.candidates.setdefault((language, row.article or "", text), (candidate, [], where))
        answered.append(uid)

    def _id(self, given: str | None, place: str, language: str, where: str) -> str:
        """Return a question's id, by default its position."""
        if not given:
            self.placed[language][place] = where
        return given or place

    def data(self) -> RetrievalData:
        """Return what was collected; see `joined`."""
        self._check_places()
        require_unique((candidate.id, where) for candidate, _, where in self.candidates.values())
        return joined(
            self.questions, [replace(candidate, answers=tuple(ids)) for candidate, ids, _ in self.candidates.values()]
        )

    def _check_places(self) -> None:
        """Warn about questions without id, aligned by position; `DataError` if a language has no question there."""
        if len(self.placed) == 1 or not any(self.placed.values()):
            return
        everywhere = {place: where for places in self.placed.values() for place, where in places.items()}
        for language, places in self.placed.items():
            if lacking := everywhere.keys() - places.keys():
                place = min(lacking, key=lambda each: (len(each), each))
                raise DataError(
                    f"{everywhere[place]}: a question without an id is a translation of that in its place ({place}) in "
                    f"other languages, and {language} has none there; give questions ids, translations the same"
                )
        log.warning("%s: questions have no id; questions at the same position count as translations", self.folder)


def _check(model: type[Model], row: Row) -> Model:
    return checked(model, {key: value for key, value in row.values.items() if value is not None}, row.place)
