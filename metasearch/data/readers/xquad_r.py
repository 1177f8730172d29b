"""XQuAD-R, the data in LAReQA: one SQuAD-style JSON file per language, with sentence boundaries.

Every sentence of every paragraph is a candidate; the encoder sees the sentence followed by its whole paragraph, with
no separator and line breaks removed. A question is answered by the sentence in which its answer begins (LAReQA,
section 3; the spans of `sentence_breaks` are used because `sentences` differs from the text in one Turkish paragraph).
The text of every answer must stand at its offset, character by character, as it does in all published files.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, StrictInt

from metasearch.config.task import Task
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import read_json
from metasearch.data.readers import COMPOSED, Shown, checked, joined, require_unique
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import DataError


class _Answer(BaseModel):
    text: Shown
    answer_start: StrictInt


class _Question(BaseModel):
    id: Annotated[str, COMPOSED]
    question: Shown
    answers: list[_Answer]


class _Paragraph(BaseModel):
    context: Shown
    sentence_breaks: list[tuple[StrictInt, StrictInt]]
    qas: list[_Question]


class _Article(BaseModel):
    title: Annotated[str, COMPOSED]
    paragraphs: list[_Paragraph]


class _File(BaseModel):
    data: list[_Article]


def files(task: Task) -> list[str]:
    """Return one file name a language."""
    return [f"{language}.json" for language in task.languages]


def read(folder: Path, task: Task) -> RetrievalData:
    """Read all languages of a task; `DataError` names file and line or JSON path."""
    questions: list[Question] = []
    candidates: list[Candidate] = []
    for language in task.languages:
        path = folder / f"{language}.json"
        asked, answers = _language(path, language)
        questions += asked
        candidates += answers
    # Titles may be translated; the questions then join the articles.
    return joined(questions, candidates)


def _language(path: Path, language: str) -> tuple[list[Question], list[Candidate]]:
    questions: list[Question] = []
    candidates: list[Candidate] = []
    places: list[tuple[str, str]] = []
    number = 0
    for a, article in enumerate(_load(path).data):
        for p, paragraph in enumerate(article.paragraphs):
            number += 1
            where = f"{path}: data[{a}].paragraphs[{p}]"
            answers = _answers(paragraph, where)
            for i, (start, end) in enumerate(paragraph.sentence_breaks):
                sentence = paragraph.context[start:end]
                text = (sentence + paragraph.context).replace("\n", "")
                uid, shown = f"{language}_{number}_{i}", sentence.replace("\n", " ")
                candidates.append(Candidate(uid, language, text, article.title, tuple(answers[i]), shown))
            questions += [Question(q.id, language, q.question, article.title) for q in paragraph.qas]
            places += [(question.id, f"{where}.qas[{i}]") for i, question in enumerate(paragraph.qas)]
    require_unique(places)
    return questions, candidates


def _answers(paragraph: _Paragraph, where: str) -> list[list[str]]:
    """Return, for each sentence, the ids of questions whose answer begins in it."""
    for i, (start, end) in enumerate(paragraph.sentence_breaks):
        if not 0 <= start < end <= len(paragraph.context):
            length = len(paragraph.context)
            raise DataError(f"{where}.sentence_breaks[{i}]: expected a span within 0 to {length}, got {start} to {end}")
        if held := blank(paragraph.context[start:end]):
            raise DataError(f"{where}.sentence_breaks[{i}]: expected a sentence from {start} to {end}, got {held}")
    answers: list[list[str]] = [[] for _ in paragraph.sentence_breaks]
    for j, question in enumerate(paragraph.qas):
        if len(question.answers) != 1:
            raise DataError(f"{where}.qas[{j}].answers: expected one answer, got {len(question.answers)}")
        at, text = question.answers[0].answer_start, question.answers[0].text
        inside = [i for i, (start, end) in enumerate(paragraph.sentence_breaks) if start <= at < end]
        if len(inside) != 1:
            says = f"{at} lies in {len(inside)} sentences, expected one"
            raise DataError(f"{where}.qas[{j}].answers[0].answer_start: {says}")
        # An offset that is off by a little would be that of another sentence, and the gold labels others.
        if (found := paragraph.context[at : at + len(text)]) != text:
            says = f"the answer to '{question.id}' is '{text}', but at {at} the text is '{found}'"
            raise DataError(f"{where}.qas[{j}].answers[0]: {says}")
        answers[inside[0]].append(question.id)
    return answers


def _load(path: Path) -> _File:
    content = checked(_File, read_json(path), str(path))
    if not any(paragraph.qas for article in content.data for paragraph in article.paragraphs):
        raise DataError(f"{path}: data: expected articles with questions, found none")
    return content
