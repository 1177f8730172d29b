"""Puts the passages of pages in the places of labels that name the pages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from metasearch.data.documents.joining import Joined, describe, join
from metasearch.data.documents.passage import Passage
from metasearch.data.readers import joined
from metasearch.data.records import Candidate, RetrievalData
from metasearch.errors import DataError

Judged = Mapping[int, Mapping[str, float]]
"""Index of a passage → id of a question → relevance."""


def join_pages(data: RetrievalData, passages: Sequence[Passage], folders: Sequence[str | Path]) -> RetrievalData:
    """Return data in which each candidate that names a page is replaced with the page's passages.

    All passages of a page are relevant, but those whose text stands on another page, too, unless the page has no other
    ones. Labels of pages that are not found are left out. Notes count them.

    Args:
        data: of `metasearch.data.labels.load_labels` with `named`.
        passages: all passages of the documents, in their order.
        folders: files and folders of the documents as they were named.

    Raises:
        DataError: no label is joined, and none has a text.
    """
    if not data.named:
        return data
    names = {each.id: each for each in data.candidates if each.id in data.named}
    found = join([(place, names[uid].text) for uid, place in data.named.items()], passages, folders)
    own, shared = _own_passages(found, passages)
    groups: dict[int, str] = {}
    for name, held in zip(data.named, own, strict=True):
        for i in held:
            groups.setdefault(i, names[name].group)
    judged = _judged(data, dict(zip(data.named, own, strict=True)))
    candidates = [each for each in data.candidates if each.id not in names]
    for i, group in sorted(groups.items()):
        answers = tuple(question for question, grade in judged[i].items() if grade)
        candidates.append(Candidate(_name(i), passages[i].language, passages[i].text, group, answers))
    grades = {pair: grade for pair, grade in data.grades.items() if pair[1] not in names}
    grades |= {
        (q, _name(i)): grade for i, of_passage in judged.items() for q, grade in of_passage.items() if grade != 1
    }
    answered = {question for candidate in candidates for question in candidate.answers}
    if not answered:
        raise DataError(describe(found))
    questions = [question for question in data.questions if question.id in answered]
    notes = [*data.notes, describe(found)]
    if shared:
        notes.append(f"passages of labelled pages that stand on other pages, too, and are no answers: {shared}")
    if lost := len({question.id for question in data.questions}) - len(answered):
        notes.append(f"skipped queries whose pages are not found: {lost}")
    grades = {pair: grade for pair, grade in grades.items() if pair[0] in answered}
    whole = joined(questions, candidates)
    return replace(
        data, questions=whole.questions, candidates=whole.candidates, grades=grades, named={}, notes=tuple(notes)
    )


def _name(passage: int) -> str:
    return f"p{passage + 1}"


def _own_passages(found: Sequence[Joined], passages: Sequence[Passage]) -> tuple[list[tuple[int, ...]], int]:
    """Return the passages of each label that are on its pages alone, or all if none is; and how many others there are.

    A passage on many pages, such as a footer, tells none from another, and would join their labels into one group.
    """
    files: dict[str, set[str]] = {}
    for passage in passages:
        files.setdefault(passage.text, set()).add(passage.file)
    kept, shared = list[tuple[int, ...]](), set[int]()
    for label in found:
        own = tuple(i for i in label.passages if len(files[passages[i].text]) == 1)
        kept.append(own or label.passages)
        shared |= {*label.passages} - {*kept[-1]}
    return kept, len(shared)


def _judged(data: RetrievalData, own: Mapping[str, Sequence[int]]) -> Judged:
    """Return the judgements of passages: the highest of the labels that mean one."""
    given = {(question, each.id): 1.0 for each in data.candidates if each.id in own for question in each.answers}
    given |= {pair: grade for pair, grade in data.grades.items() if pair[1] in own}
    judged: dict[int, dict[str, float]] = {i: {} for held in own.values() for i in held}
    for (question, name), grade in given.items():
        for i in own[name]:
            judged[i][question] = max(grade, judged[i].get(question, 0.0))
    return judged
