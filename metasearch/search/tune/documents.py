"""Labelled documents of a tuning: how they become passages, and long ones that are cut."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from metasearch.config.languages import UNKNOWN
from metasearch.data.formats.documents import is_address, is_path
from metasearch.data.records import Candidate, RetrievalData
from metasearch.search.documents.chunking import Chunker, Settings
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.settings import IndexSettings

Truncated = Callable[[Sequence[str]], Sequence[bool]]


def index_settings(data: RetrievalData) -> IndexSettings:
    """Return how the documents of a tuning become passages: languages are detected among the languages of labels."""
    # Answers that are names of pages have no language.
    quoted = (each.language for each in data.candidates if not (is_path(each.text) or is_address(each.text)))
    languages = {*(question.language for question in data.questions), *quoted} - {UNKNOWN}
    return IndexSettings(detect=tuple(sorted(languages)) if len(languages) > 1 else "all")


def cut_long(data: RetrievalData, how: Settings, truncated: Truncated) -> tuple[RetrievalData, str]:
    """Return data with long candidates in passages, and a line that counts them, empty where none is long.

    Each passage answers what the document answers. They are one page: a ranked list has it once, at its best passage.
    The first passage keeps the candidate's id. `truncated` tells which texts the encoder does not read to their end.
    """
    cuts = truncated([each.text for each in data.candidates])
    long = [each for each, cut in zip(data.candidates, cuts, strict=True) if cut and not each.page]
    if not long:
        return data, ""
    chunker = Chunker(how)
    passages = {each.id: _passages(each, chunker) for each in long}
    candidates = [passage for each in data.candidates for passage in passages.get(each.id, [each])]
    names = {each.id: [passage.id for passage in passages.get(each.id, [each])] for each in data.candidates}
    grades = {(question, name): grade for (question, whole), grade in data.grades.items() for name in names[whole]}
    count = sum(map(len, passages.values()))
    note = (
        f"{len(long)} of {len(data.candidates)} labelled documents are longer than the encoder reads, so they were cut "
        f"into {count} passages of {how.limit} tokens at most; each is an answer, and a document counts once."
    )
    return replace(data, candidates=tuple(candidates), grades=grades), note


def _passages(document: Candidate, chunker: Chunker) -> list[Candidate]:
    texts = [text for _, text in chunker.cut(Section(document.text), Notes())]
    ids = [document.id, *(f"{document.id} passage {number}" for number in range(2, len(texts) + 1))]
    return [replace(document, id=name, text=text, page=document.id) for name, text in zip(ids, texts, strict=True)]
