"""Scores held-out labels of pages, which are ranked as a search of the index ranks them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from metasearch.config.measure import Measure, Pool
from metasearch.data.records import Candidate, RetrievalData, commonest, grouped
from metasearch.encoders.protocols import TextEncoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.metrics.base import Ranks, load_function
from metasearch.evaluation.metrics.pairs import text_numbers
from metasearch.evaluation.scores import Evaluation, questions_in_order
from metasearch.runs.per_query_results import Ranking
from metasearch.search.index.page_scores import group_means, page_scores
from metasearch.search.tune.table import OTHERS, OWN

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]
Boosts = Mapping[str, tuple[Collection[str], float]]
"""Text of a question → pages, and what their scores gain."""


def evaluate_pages(
    encoder: TextEncoder,
    data: RetrievalData,
    measures: Sequence[Measure],
    pool: Pool,
    sharpness: float | None = None,
    boosts: Boosts = MappingProxyType({}),
) -> Evaluation:
    """Return the scores in a multilingual pool: of pages where candidates have them, with columns of both sides."""
    ranker = PageRanker.of(data, sharpness, boosts)
    found = evaluate(encoder, data, measures, [pool], ranker=ranker)
    questions = found.questions
    if not ranker or not questions.ranking:
        return found
    columns = dict(questions.columns)
    asked = np.array([question.language for question in questions.ranking.questions])
    for measure in measures:
        if not measure.load().languages:
            for side, values in _score_sides(ranker.data, questions.ranking, measure).items():
                for language in data.questions_by_language:
                    columns[f"{measure} {side}", pool, language, "all"] = values[asked == language]
    return replace(found, questions=replace(questions, columns=columns))


def _score_sides(data: RetrievalData, ranking: Ranking, measure: Measure) -> dict[str, NDArray[np.float64]]:
    """Return scores of the relevant candidates in the question's language, and of those in others, apart.

    One part is ranked among all candidates that are not relevant. NaN where a question has none of a part.
    """
    owners = np.repeat(np.arange(len(ranking.questions)), np.diff(ranking.offsets))
    pairs = [(ranking.questions[i], ranking.candidates[j]) for i, j in zip(owners, ranking.relevant, strict=True)]
    same = np.array([question.language == candidate.language for question, candidate in pairs], bool)
    gains = np.array([data.grades.get((question.id, candidate.id), 1.0) for question, candidate in pairs])
    function, sides = load_function(measure, "retrieval"), {}
    for side, chosen in ((OWN, same), (OTHERS, ~same)):
        # How many relevant candidates of the other part rank above each one.
        left = np.concatenate([[0], np.cumsum(~chosen)])
        ranks = (ranking.ranks - (left[:-1] - left[ranking.offsets[owners]]))[chosen]
        there, counts = np.unique(owners[chosen], return_counts=True)
        part = Ranks(ranks, np.concatenate([[0], np.cumsum(counts)]), gains[chosen] if data.grades else None)
        sides[side] = np.full(len(ranking.questions), np.nan)
        sides[side][there] = function(part, measure.k) if len(there) else 0.0
    return sides


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
        numbers = text_numbers(map(_page_of, data.candidates))
        passages = np.argsort(numbers, kind="stable")
        pages = by_page(data)
        column = {page.page: i for i, page in enumerate(pages.candidates)}
        found = (boosts.get(question.text, ((), 0.0)) for question in questions_in_order(data))
        gains = [([column[page] for page in own if page in column], gain) for own, gain in found]
        groups = text_numbers(page.work or f"\0{page.id}" for page in pages.candidates)
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
    pages = grouped(data.candidates, _page_of)
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
