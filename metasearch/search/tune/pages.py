"""Labels on the pages of an index: passages are ranked as the index has them, and a page is what answers a question.

A page is a file, or a row of a file of rows. Which pages are translations of each other, the index says.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metasearch.data.readers import joined as merge_groups
from metasearch.data.records import Candidate, RetrievalData, commonest, grouped
from metasearch.errors import DataError
from metasearch.search.documents.joining import describe, join
from metasearch.search.documents.passage import Passage
from metasearch.search.documents.read import page_of

_OFTEN = 10
"""Clicks on one page of a query for each click on another one, from which the other one is no label."""


@dataclass(frozen=True)
class Pages:
    """Labels whose candidates are passages of documents.

    Attributes:
        data: the questions that were joined to pages; candidates are all passages of these pages and of their
            translations. A passage answers what its page answers.
        unlabelled: passages of other pages.
        beside: ids of candidates that no label means, although their page answers a question: they are not trained on.
        notes: what was joined, what counts and what is searched, in words.
    """

    data: RetrievalData
    unlabelled: tuple[Candidate, ...]
    beside: frozenset[str]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, data: RetrievalData, passages: Sequence[Passage], groups: Sequence[str], originals: Sequence[int],
        folders: Sequence[str], most: int, same: bool | None, bases: Sequence[str] = (),
    ) -> "Pages":  # fmt: skip
        """Join labels to pages by path, address, id or text.

        Args:
            data: labels, whose candidates name or quote pages.
            passages: all passages of the documents, in their order.
            groups: what the page of each passage shares with its translations.
            originals: number of each passage on the page that its page copies, or its own; copies are not searched.
            folders: files and folders of the documents as they were named.
            most: passages of pages without a label that are searched; evenly spaced pages are taken.
            same: whether the translations of a page answer what it answers; by default they do.
            bases: addresses that stand for a folder, each as `ADDRESS` or `ADDRESS=FOLDER`; by default one is found.

        Raises:
            ConfigError: the folder of a base has no document.
            DataError: fewer than half of the labels have a page; or translations are asked for, and there are none.
        """
        places = ((data.places.get(each.id, each.id), each.text) for each in data.candidates)
        found = join(places, passages, folders, bases)
        numbers = ([originals[i] for i in one.passages] for one in found)
        meant = {each.id: tuple(dict.fromkeys(own)) for each, own in zip(data.candidates, numbers, strict=True)}
        data, clicked = _add_clicks(data, meant)
        labels = [each for each in data.candidates if each.answers]
        said = describe([one for each, one in zip(data.candidates, found, strict=True) if each.answers])
        if 2 * sum(bool(meant[each.id]) for each in labels) < len(labels):
            raise DataError(f"{said}. A label is the path, the address, the id or the text of a page")
        book, translated = _Book(passages, groups, originals), same is not False
        if same and all(len(alike) == 1 for alike in book.translations.values()):
            raise DataError(
                "--same-page: no page has a translation in the index, by its path, its head or the field group"
            )
        relevant, positive = _answers(labels, meant, book, translated)
        asked = {uid for uids in relevant.values() for uid in uids}
        near = book.with_translations(relevant)
        candidates = [book.candidate(i, relevant) for page in near for i in book.pages[page]]
        questions = [each for each in data.questions if each.id in asked]
        own = merge_groups(questions, candidates)
        wrong = _wrong(data, meant, book, relevant)
        labelled = {*near}
        others = [page for page in book.pages if page not in labelled]
        others = others[:: max(1, -(-sum(len(book.pages[page]) for page in others) // most))]  # evenly spaced
        notes = [said, *clicked, *_describe(data, asked, book, near, others, translated)]
        beside = frozenset(_id(i) for page in near for i in book.pages[page] if i not in positive)
        unlabelled = tuple(book.candidate(i, relevant) for page in others for i in book.pages[page])
        return cls(replace(own, grades=wrong, notes=data.notes), unlabelled, beside, tuple(notes))


def _add_clicks(data: RetrievalData, meant: Mapping[str, Sequence[int]]) -> tuple[RetrievalData, list[str]]:
    """Return labels with the clicks of all names of a page, without rare ones, and a line about clicks.

    A page with a tenth of the clicks of another one of its query, or fewer, is no label: it may be a mistake.
    """
    page = {pair: (pair[0], tuple(meant[pair[1]]) or pair[1]) for pair in data.clicks}
    clicks, most = Counter[Any](), Counter[str]()
    for pair, own in page.items():
        clicks[own] += data.grades.get(pair, 1.0)  # type: ignore[assignment]
        most[pair[0]] = max(most[pair[0]], clicks[own])
    rare = {own for own, count in clicks.items() if _OFTEN * count <= most[own[0]]}
    grades = {pair: grade for pair, grade in data.grades.items() if pair not in page}
    grades |= {pair: float(clicks[own]) for pair, own in page.items() if own not in rare and clicks[own] != 1}
    candidates = tuple(
        replace(each, answers=tuple(uid for uid in each.answers if page.get((uid, each.id)) not in rare))
        for each in data.candidates
    )
    counted = f"clicks: {clicks.total():g} on {len(clicks)} pairs of query and page"
    line = f"{counted}; nDCG weighs pairs by clicks, and all else takes them alike"
    few = f"{len(rare)} pairs ({sum(clicks[own] for own in rare):g} clicks) with a tenth of another page's or less"
    notes = [line + f"; not used: {few}" * bool(rare)] if clicks.total() > len(clicks) else []
    return replace(data, candidates=candidates, grades=grades), notes


class _Book:
    """The pages of passages, and which are translations of each other."""

    def __init__(self, passages: Sequence[Passage], groups: Sequence[str], originals: Sequence[int]) -> None:
        self.passages = passages
        self.pages = grouped(dict.fromkeys(originals), lambda i: _name(passages[i]))
        self.page_of = {i: page for page, own in self.pages.items() for i in own}
        self.language = {page: commonest(passages[i].language for i in own) for page, own in self.pages.items()}
        self.translations: dict[str, tuple[str, ...]] = {}
        """Page → itself and its translations."""
        for alike in grouped(self.pages, lambda page: groups[self.pages[page][0]]).values():
            apart = len({self.language[page] for page in alike}) == len(alike)
            self.translations |= {page: alike if apart else (page,) for page in alike}

    def with_translations(self, pages: Iterable[str]) -> list[str]:
        """Return pages and their translations, in their order."""
        return list(dict.fromkeys(other for page in pages for other in self.translations[page]))

    def candidate(self, i: int, relevant: Mapping[str, Collection[str]]) -> Candidate:
        """Return a passage as a candidate, in the group of its page and its translations."""
        page, own = self.page_of[i], self.passages[i]
        first, *others = self.translations[page]
        answers, work = tuple(relevant.get(page, ())), first if others else ""
        return Candidate(_id(i), own.language, own.text, f"page {first}", answers, page=page, work=work)


def _answers(
    labels: Iterable[Candidate], meant: Mapping[str, Sequence[int]], book: _Book, translated: bool
) -> tuple[dict[str, dict[str, None]], set[int]]:
    """Return page → ids of the questions that it answers, and the passages that are meant.

    Of a translation with as many passages, those at the same places are meant.
    """
    relevant: dict[str, dict[str, None]] = {}
    positive: set[int] = set()
    for label in labels:
        for i in meant[label.id]:
            page = book.page_of[i]
            place = book.pages[page].index(i)
            for other in book.translations[page] if translated else (page,):
                relevant.setdefault(other, {}).update(dict.fromkeys(label.answers))
                if len(book.pages[other]) == len(book.pages[page]):
                    positive.add(book.pages[other][place])
    return relevant, positive


def _wrong(
    data: RetrievalData, meant: Mapping[str, Sequence[int]], book: _Book, relevant: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], float]:
    """Return the grades of all passages of a page: what its labels say."""
    grades: dict[tuple[str, str], float] = {}
    for (uid, name), grade in data.grades.items():
        for page in book.with_translations({book.page_of[i] for i in meant[name]}):
            # A page that answers by another label is not wrong.
            if grade or uid not in relevant.get(page, ()):
                places = [(uid, _id(i)) for i in book.pages[page]]
                grades |= {place: max(grade, grades.get(place, 0.0)) for place in places}
    return grades


def _describe(
    data: RetrievalData,
    asked: Collection[str],
    book: _Book,
    near: Sequence[str],
    others: Sequence[str],
    translated: bool,
) -> list[str]:
    notes, count = [], sum(len(book.pages[page]) for page in (*near, *others))
    if lacking := len({each.id for each in data.questions}) - len(asked):
        notes.append(f"{lacking} questions without a page are left out.")
    notes.append(
        f"Folds search {count} of {len(book.passages)} passages, of {len(near) + len(others)} pages. A page counts "
        "once, at its best passage."
    )
    pages = sum(len(book.translations[page]) > 1 for page in near)
    if pages and translated:
        notes.append(
            f"{pages} pages are translations of each other and have the same answers; --no-same-page tells them apart."
        )
    elif pages:
        notes.append("--no-same-page: the translations of a page count as wrong.")
    return notes


def _id(i: int) -> str:
    return f"passage {i}"


def _name(passage: Passage) -> str:
    file, line = page_of(passage)
    return f"{file}:{line}" if line else file
