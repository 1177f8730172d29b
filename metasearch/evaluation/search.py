"""Search: scores all candidates for all questions and returns where the relevant ones rank, and what ranks highest.

One matrix product scores the pool of all languages and the pool of each language: a rank is 1 more than the number of
candidates with a higher score, counted by language. Only the scores of a block of questions are in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.encoders.pool_scores import balance
from metasearch.errors import NonFiniteError
from metasearch.evaluation.metrics.accuracy import first_equal
from metasearch.evaluation.metrics.base import Ranks
from metasearch.runs.per_query_results import Ranking, Text

TOP = 20
"""How many of the highest ranked candidates a result has: as deep as mAP@20 looks."""

_CELLS = 2**22
"""Scores in a block, 16 MiB. Smaller blocks slow the matrix product down."""

Indices = NDArray[np.int64]
Gains = NDArray[np.float64]
Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Rescoring:
    """Scores that replace those of the highest ranked candidates of a question.

    Attributes:
        scores: number of a question and indices of K candidates → their new scores, `(K,)`.
        depth: candidates of each question that get one.
    """

    scores: Callable[[int, Indices], Scores]
    depth: int


@dataclass(frozen=True)
class Judgements:
    """Which candidates are relevant to each of N questions, M in all.

    Attributes:
        columns: indices of the relevant candidates, ascending within a question, `(M,)`.
        offsets: question i has those from `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`.
        gains: relevance of each, above 0, `(M,)`; None where all have 1.
    """

    columns: Indices
    offsets: Indices
    gains: Gains | None = None

    @classmethod
    def of(cls, relevant: Sequence[Sequence[int]]) -> "Judgements":
        """Return the judgements that list the ascending indices of each question."""
        offsets = np.cumsum([0, *map(len, relevant)], dtype=np.int64)
        return cls(np.array([column for columns in relevant for column in columns], np.int64), offsets)

    @classmethod
    def from_answers(cls, questions: Sequence[Question], data: RetrievalData) -> "Judgements":
        """Return the judgements by which the candidates that answer a question are relevant to it."""
        # Translations of a question share its id, and with it the relevant candidates of all languages.
        answers: dict[str, list[int]] = {question.id: [] for question in questions}
        for column, candidate in enumerate(data.candidates):
            for answered in candidate.answers:
                if answered in answers:
                    answers[answered].append(column)
        found = cls.of([answers[question.id] for question in questions])
        if not data.grades:
            return found
        pairs = zip((questions[owner].id for owner in found.owners), found.columns, strict=True)
        gains = [data.grades.get((uid, data.candidates[column].id), 1.0) for uid, column in pairs]
        return replace(found, gains=np.array(gains))

    @property
    def owners(self) -> Indices:
        """Index of the question of each relevant candidate, `(M,)`."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def part(self, start: int, end: int) -> "Judgements":
        """Return the judgements of the questions from `start` up to `end`."""
        offsets = self.offsets[start : end + 1]
        rows = slice(offsets[0], offsets[-1])
        return Judgements(self.columns[rows], offsets - offsets[0], None if self.gains is None else self.gains[rows])


@dataclass(frozen=True)
class SearchResult:
    """Result of a search of C candidates of L languages for N questions.

    Attributes:
        judgements: relevant candidates of each question, M in all.
        languages: index of the language of each candidate, `(C,)`.
        above: how many candidates of each language rank above each relevant one, `(M, L)`.
        top: indices of the highest ranked candidates, `(N, K)`.
        scores: scores of the highest ranked candidates, `(N, K)`.
    """

    judgements: Judgements
    languages: Indices
    above: Indices
    top: Indices
    scores: NDArray[np.float32]

    def ranks(self, questions: slice, language: int | None = None) -> Ranks:
        """Return the ranks of the relevant candidates of some questions, among those of one language or among all.

        `DataError` where a question has no relevant candidate among them.
        """
        part = self.judgements.part(questions.start, questions.stop)
        above = self.above[self.judgements.offsets[questions.start] :][: len(part.columns)]
        owners, gains = part.owners, part.gains
        if language is None:
            ranks = above.sum(1) + 1
        else:
            inside = self.languages[part.columns] == language
            ranks, owners = above[inside, language] + 1, owners[inside]
            gains = None if gains is None else gains[inside]
        sizes = np.bincount(owners, minlength=len(part.offsets) - 1)
        # Relevant candidates are stored by index; `Ranks` wants them by rank within each question.
        order = np.lexsort((ranks, owners))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Ranks(ranks[order], offsets, None if gains is None else gains[order])


def search(
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    candidates: NDArray[np.float32],
    judgements: Judgements,
    languages: Indices,
    balanced: bool = False,
    rescoring: Rescoring | None = None,
) -> SearchResult:
    """Rank all candidates for each question by the dot product of their vectors; of equal scores the first is highest.

    Args:
        questions: N questions, to name one whose scores are not finite.
        vectors: vectors of the questions, `(N, D)`.
        candidates: vectors of the candidates, `(C, D)`.
        judgements: relevant candidates of each question.
        languages: index of the language of each candidate, `(C,)`; each of 0 to L - 1 occurs.
        balanced: rank by scores that are balanced between languages (`metasearch.encoders.pool_scores`).
        rescoring: rank the highest ranked candidates by other scores, above all others.

    Raises:
        NonFiniteError: a score is NaN or infinite.
    """
    # Before `first_equal`: vectors that are equal in float32 must tie.
    vectors, candidates = (np.asarray(side, np.float32) for side in (vectors, candidates))
    size, depth = len(candidates), min(TOP, len(candidates))
    first = first_equal(candidates)
    copies = np.flatnonzero(first != np.arange(size))
    by_language = np.argsort(languages, kind="stable")
    starts = np.flatnonzero(np.diff(languages[by_language], prepend=-1))
    counts = np.zeros((len(judgements.columns), len(starts)), np.int64)
    top, best = np.zeros((len(vectors), depth), np.int64), np.zeros((len(vectors), depth), np.float32)
    blocks = min(len(vectors), -(-len(vectors) * size // _CELLS))
    for start, end in pairwise(len(vectors) * i // blocks for i in range(blocks + 1)):
        scores = np.empty((end - start, size), np.float32)
        # With `out`, autocast leaves the product in float32.
        torch.matmul(torch.from_numpy(vectors[start:end]), torch.from_numpy(candidates).T, out=torch.from_numpy(scores))
        # Equal candidates tie exactly, however the product rounded them, so that the lower index ranks first.
        scores[:, copies] = scores[:, first[copies]]
        # A NaN is neither higher nor equal: unchecked, a relevant candidate with such a score would rank first.
        _require_finite(scores, questions[start:end])
        if balanced:
            balance(scores, np.split(by_language, starts[1:]))
        for number, row in enumerate(scores, start):
            if rescoring is not None:
                _rescore(row, number, rescoring)
            mine = slice(judgements.offsets[number], judgements.offsets[number + 1])
            counts[mine] = _count_above(row, judgements.columns[mine, None], by_language, starts)
            top[number] = _highest(row, depth)
            best[number] = row[top[number]]
    return SearchResult(judgements, languages, counts, top, best)


def _count_above(row: NDArray[np.float32], columns: Indices, by_language: Indices, starts: Indices) -> Indices:
    """Return how many candidates of each language rank above each relevant one, `(C,)` and `(R, 1)` → `(R, L)`.

    `by_language` has the candidates language by language, each of which begins at one of `starts`.
    """
    sorted_row = row[by_language]
    above, equal = sorted_row > row[columns], sorted_row == row[columns]
    if np.count_nonzero(equal) > len(columns):  # each equals itself; further ties are rare
        above |= equal & (by_language < columns)
    counts: Indices = np.add.reduceat(above, starts, axis=1, dtype=np.int64)
    return counts


def _rescore(row: Scores, number: int, rescoring: Rescoring) -> None:
    """Replace the highest scores of a row in place; all others stay in their order below them."""
    highest = _highest(row, min(rescoring.depth, len(row)))
    new = rescoring.scores(number, highest)
    others = np.ones(len(row), bool)
    others[highest] = False
    # Whole numbers below the lowest new score, which float32 holds exactly, so that no tie appears or disappears.
    distinct, places = np.unique(row[others], return_inverse=True)
    row[others] = np.floor(new.min()) + (places - len(distinct))
    row[highest] = new


def _highest(row: NDArray[np.float32], count: int) -> Indices:
    """Return the indices of the highest scores of a row, the highest first; equal ones by their index."""
    reaching = np.flatnonzero(row >= np.partition(row, len(row) - count)[len(row) - count])
    return reaching[np.argsort(-row[reaching], kind="stable")[:count]]


def _require_finite(scores: NDArray[np.float32], questions: Sequence[Question]) -> None:
    """Raise `NonFiniteError` naming the first question with a score that is NaN or infinite."""
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        wrong = questions[int(np.argmin(finite))]
        raise NonFiniteError(f"the encoder's scores for question '{wrong.id}' ({wrong.language}) are not finite")


def build_ranking(questions: Sequence[Question], candidates: Sequence[Candidate], result: SearchResult) -> Ranking:
    """Return a search result in the form that a run stores; languages are numbered in alphabetical order."""
    languages = tuple(sorted({candidate.language for candidate in candidates}))
    columns, offsets, owners = result.judgements.columns, result.judgements.offsets, result.judgements.owners
    ranks = result.above.sum(1) + 1
    order = np.lexsort((ranks, owners))
    # A stored ranking counts only candidates above that are not relevant. How many relevant ones of each language are
    # above: all that come before in the sorted order, less those of earlier questions.
    before = np.zeros((len(columns) + 1, len(languages)), np.int64)
    before[1 + np.arange(len(columns)), result.languages[columns[order]]] = 1
    before = before.cumsum(axis=0)
    relevant = before[:-1] - before[offsets[owners]]
    return Ranking(
        tuple(Text(q.id, q.language, q.text) for q in questions),
        tuple(Text(c.id, c.language, c.shown or c.text) for c in candidates),
        languages,
        offsets,
        columns[order],
        ranks[order],
        result.above[order] - relevant,
        result.top,
        result.scores.astype(np.float32),
    )
