"""Ranks pages in the scores of held-out labels, as a search of the index does."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Candidate, RetrievalData, commonest
from metasearch.evaluation.scores import questions_in_order
from metasearch.search.index.page_scores import group_means, page_scores

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]
Boosts = Mapping[str, tuple[Collection[str], float]]
"""Text of a question → pages, and what their scores gain."""


@dataclass(frozen=True)
class PageRanker:
    """Ranks pages, given the scores of their passages.

    Attributes:
        data: the pages as candidates.
        passages: numbers of the passages, page by page.
        starts: the first of `passages` of each page.
        groups: number of each page's group of translations, from 0.
        gains: for each question the columns of pages that gain, and the gain.
        sharpness: of page scores; None takes the best passage of a page, and no translations.
    """

    data: RetrievalData
    passages: Numbers
    starts: Numbers
    groups: Numbers
    gains: Sequence[tuple[Sequence[int], float]]
    sharpness: float | None

    @classmethod
    def of(
        cls, data: RetrievalData, sharpness: float | None = None, boosts: Boosts = MappingProxyType({})
    ) -> "PageRanker | None":
        """Return the ranker of the pages whose passages are the candidates; None where no candidate has a page."""
        if not any(candidate.page for candidate in data.candidates):
            return None
        numbers = _numbers([_page_of(candidate) for candidate in data.candidates])
        passages = np.argsort(numbers, kind="stable")
        pages = by_page(data)
        column = {page.page: i for i, page in enumerate(pages.candidates)}
        found = (boosts.get(question.text, ((), 0.0)) for question in questions_in_order(data))
        gains = [([column[page] for page in own if page in column], gain) for own, gain in found]
        groups = _numbers([page.work or f"\0{page.id}" for page in pages.candidates])
        starts = np.flatnonzero(np.diff(numbers[passages], prepend=-1))
        return cls(pages, passages, starts, groups, gains, sharpness)

    def joined(self, scores: Scores) -> Scores:
        """Return the scores of pages, from the scores of passages."""
        return page_scores(scores[:, self.passages], self.starts, self.sharpness)

    def change(self, scores: Scores, start: int) -> None:
        """Add gains and the evidence of translations to the scores of the questions from number `start` on."""
        for row, (columns, gain) in zip(scores, self.gains[start:], strict=False):
            row[columns] += gain
        if self.sharpness is not None:
            scores += group_means(scores, self.groups)
            scores /= 2


def by_page(data: RetrievalData) -> RetrievalData:
    """Return data with one candidate for each page: its first passage, with all that the page answers.

    Its language is that of most passages of the page. Pages are in the order of their first passages.
    """
    pages: dict[str, list[Candidate]] = {}
    for candidate in data.candidates:
        pages.setdefault(_page_of(candidate), []).append(candidate)
    firsts = (replace(own[0], language=commonest(each.language for each in own)) for own in pages.values())
    answers = (dict.fromkeys(uid for each in own for uid in each.answers) for own in pages.values())
    ranked = (replace(first, answers=tuple(own)) for first, own in zip(firsts, answers, strict=True))
    page_of = {each.id: own[0].id for own in pages.values() for each in own}
    grades: dict[tuple[str, str], float] = {}
    for (uid, name), grade in data.grades.items():
        place = (uid, page_of.get(name, name))
        grades[place] = max(grade, grades.get(place, 0.0))
    return replace(data, candidates=tuple(ranked), grades=grades)


def _page_of(candidate: Candidate) -> str:
    return candidate.page or f"\0{candidate.id}"


def _numbers(names: Sequence[str]) -> Numbers:
    """Return the number of each distinct name, from 0, `(n,)`."""
    found: dict[str, int] = {}
    return np.array([found.setdefault(name, len(found)) for name in names], np.int64)
