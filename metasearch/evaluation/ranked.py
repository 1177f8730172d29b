"""Searches of the pool of all candidates, and what is kept of them.

One matrix product scores all pools: a candidate's rank among those of its own language needs only how many of them rank
above it. The scores of a block of questions are held at a time, never those of all. What follows the product is counted
on as many threads as torch has; whole numbers, so that neither blocks nor threads change them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import NonFiniteError
from metasearch.evaluation.metrics.ranking import Indices, above, blocks, highest, members
from metasearch.runs.questions import Ranking, Text

TOP = 20
"""How many of the highest ranked candidates are kept: as deep as mAP@20 looks."""

_CELLS = 2**22
"""Scores that are held at once, 16 MiB of them. With fewer a matrix product slows down."""


@dataclass(frozen=True)
class Relevant:
    """What is relevant to each of N questions, M candidates in all.

    Attributes:
        columns: indices of the candidates, ascending within a question, `(M,)`.
        offsets: question i has those from `offsets[i]` to `offsets[i + 1]`, `(N + 1,)`.
    """

    columns: Indices
    offsets: Indices

    @classmethod
    def of(cls, relevant: Sequence[Sequence[int]]) -> "Relevant":
        """Return it from the ascending indices of each question."""
        offsets = np.cumsum([0, *map(len, relevant)], dtype=np.int64)
        return cls(np.array([column for found in relevant for column in found], np.int64), offsets)

    @classmethod
    def to(cls, questions: Sequence[Question], data: RetrievalData) -> "Relevant":
        """Return what answers each question."""
        answers: dict[str, list[int]] = {question.id: [] for question in questions}
        for column, candidate in enumerate(data.candidates):
            for answered in candidate.answers:
                if answered in answers:
                    answers[answered].append(column)
        return cls.of([answers[question.id] for question in questions])

    @property
    def owners(self) -> Indices:
        """Index of the question of each candidate, `(M,)`."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def part(self, start: int, end: int) -> "Relevant":
        """Return what is relevant to the questions from one on, up to another."""
        offsets = self.offsets[start : end + 1]
        return Relevant(self.columns[offsets[0] : offsets[-1]], offsets - offsets[0])


@dataclass(frozen=True)
class Search:
    """What N questions find among C candidates of L languages.

    Attributes:
        relevant: to each question, M candidates in all.
        spoken: index of the language of each candidate, `(C,)`.
        above: how many candidates of each language rank above each relevant one, `(M, L)`.
        top: the highest ranked candidates, `(N, K)`.
        scores: their scores, `(N, K)`.
    """

    relevant: Relevant
    spoken: Indices
    above: Indices
    top: Indices
    scores: NDArray[np.float32]

    def ranks(self, questions: slice, language: int | None = None) -> tuple[Indices, Indices]:
        """Return the ranks, from 1, of what is relevant to some questions, ascending within each, and their offsets.

        Args:
            questions: the rows of the search.
            language: where only its candidates are the pool; None where all are.
        """
        mine = self.relevant.part(questions.start, questions.stop)
        above = self.above[self.relevant.offsets[questions.start] :][: len(mine.columns)]
        owner = mine.owners
        if language is None:
            found = above.sum(1) + 1
        else:
            inside = self.spoken[mine.columns] == language
            found, owner = above[inside, language] + 1, owner[inside]
        sizes = np.bincount(owner, minlength=len(mine.offsets) - 1)
        return found[np.lexsort((found, owner))], np.concatenate([[0], np.cumsum(sizes)])


def search(
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    candidates: NDArray[np.float32],
    relevant: Relevant,
    spoken: Indices,
) -> Search:
    """Rank all candidates for each question by the dot product of their vectors.

    Args:
        questions: named where a score is not finite.
        vectors: of the questions, `(N, D)`.
        candidates: their vectors, `(C, D)`; of equal scores the first ranks highest.
        relevant: to each question.
        spoken: index of the language of each candidate, `(C,)`.

    Raises:
        NonFiniteError: a score is NaN or infinite.
    """
    groups = members(spoken, int(spoken.max()) + 1)
    vectors, candidates = (np.asarray(side, np.float32) for side in (vectors, candidates))
    copies, originals = _repeated(candidates)
    threads = torch.get_num_threads()
    bounds = blocks(len(vectors), len(candidates), _CELLS)
    # Fresh memory for each block would cost a third of the product.
    longest = max(end - start for start, end in bounds)
    room = np.empty((longest, len(candidates)), vectors.dtype)
    pool = torch.from_numpy(candidates)
    parts: list[_Part] = []
    with ThreadPoolExecutor(threads) as workers:
        for start, end in bounds:
            scores = room[: end - start]
            torch.matmul(torch.from_numpy(vectors[start:end]), pool.T, out=torch.from_numpy(scores))
            scores[:, copies] = scores[:, originals]
            _require_finite(scores, questions[start:end])
            shares = [((end - start) * i // threads, (end - start) * (i + 1) // threads) for i in range(threads)]
            rows = [scores[a:b] for a, b in shares]
            theirs = [relevant.part(start + a, start + b) for a, b in shares]
            parts += workers.map(_ranked, rows, theirs, repeat(groups))
    counts, top, best = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Search(relevant, spoken, counts, top, best)


_Part = tuple[Indices, Indices, NDArray[np.float32]]


def _ranked(scores: NDArray[np.float32], relevant: Relevant, groups: NDArray[np.uint64]) -> _Part:
    """Return `above`, `top` and `scores` of a search for some of its questions."""
    top = highest(scores, TOP)
    return above(scores, relevant.columns, relevant.offsets, groups), top, np.take_along_axis(scores, top, axis=1)


def _require_finite(scores: NDArray[np.float32], questions: Sequence[Question]) -> None:
    """Raise `NonFiniteError` naming the first question with a score that is NaN or infinite."""
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        wrong = questions[int(np.argmin(finite))]
        raise NonFiniteError(f"the encoder's scores for question '{wrong.id}' ({wrong.language}) are not finite")


def ranking_of(questions: Sequence[Question], candidates: Sequence[Candidate], found: Search) -> Ranking:
    """Return what is kept of a search.

    Args:
        questions: in the order of the search.
        candidates: the same, with their languages numbered in alphabetical order.
        found: the search.
    """
    languages = tuple(sorted({candidate.language for candidate in candidates}))
    columns, offsets, owners = found.relevant.columns, found.relevant.offsets, found.relevant.owners
    ranks = found.above.sum(1) + 1
    order = np.lexsort((ranks, owners))
    # How many relevant ones of each language come before: all that do, less those of earlier questions.
    before = np.zeros((len(columns) + 1, len(languages)), np.int64)
    before[1 + np.arange(len(columns)), found.spoken[columns[order]]] = 1
    before = before.cumsum(axis=0)
    relevant = before[:-1] - before[offsets[owners]]
    return Ranking(
        tuple(Text(q.id, q.language, q.text) for q in questions),
        tuple(Text(c.id, c.language, c.shown or c.text) for c in candidates),
        languages,
        offsets,
        columns[order],
        ranks[order],
        found.above[order] - relevant,
        found.top,
        found.scores.astype(np.float32),
    )


def _repeated(vectors: NDArray[np.float32]) -> tuple[Indices, Indices]:
    """Return the indices of vectors that stand earlier, too, and where each stands first.

    A matrix product may round two equal columns differently, so that equal scores are copied, not relied on.
    """
    first: dict[bytes, int] = {}
    originals = np.array([first.setdefault(vector.tobytes(), i) for i, vector in enumerate(vectors)], np.int64)
    copies = np.flatnonzero(originals != np.arange(len(vectors)))
    return copies, originals[copies]
