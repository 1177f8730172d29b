"""Search: scores all candidates for all questions and returns where the relevant ones rank, and what ranks highest.

One matrix product scores the multilingual pool and each language's pool: a rank is 1 more than the number of
candidates with a higher score, counted by language. Only the scores for a block of questions are in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.data.records import Question
from metasearch.encoders.pool_scores import balance
from metasearch.errors import NonFiniteError
from metasearch.evaluation.metrics.pairs import first_equal
from metasearch.evaluation.scores import Indices, Judgements, SearchResult

TOP = 20
"""How many of the highest ranked candidates a result has: as deep as mAP@20 looks."""

_CELLS = 2**22
"""Scores in a block, 16 MiB. Smaller blocks slow the matrix product down."""

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Rescoring:
    """Scores that replace a question's top scores.

    Attributes:
        scores: question number and K candidate indices → their new scores, `(K,)`.
        depth: candidates of each question that get one.
    """

    scores: Callable[[int, Indices], Scores]
    depth: int


def search(
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    candidates: NDArray[np.float32],
    judgements: Judgements,
    languages: Indices,
    balanced: bool = False,
    rescoring: Rescoring | None = None,
    depth: int = TOP,
) -> SearchResult:
    """Rank all candidates for each question by dot product; ties by index.

    N questions have vectors `(N, D)`, C candidates `(C, D)`, and `languages` is the index of the language of each
    candidate, `(C,)`; each of 0 to L - 1 occurs. With `balanced`, scores are normalised per language
    (`metasearch.encoders.pool_scores`). `depth` candidates of each question are kept.
    """
    # Before `first_equal`: vectors that are equal in float32 must tie.
    vectors, candidates = (np.asarray(side, np.float32) for side in (vectors, candidates))
    size, depth = len(candidates), min(depth, len(candidates))
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
    """Return how many candidates of each language rank above each relevant one, `(C,)` and `(R, 1)` → `(R, L)`."""
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
    """Return the indices of the highest scores in a row, in order; ties by index."""
    reaching = np.flatnonzero(row >= np.partition(row, len(row) - count)[len(row) - count])
    return reaching[np.argsort(-row[reaching], kind="stable")[:count]]


def _require_finite(scores: NDArray[np.float32], questions: Sequence[Question]) -> None:
    """Raise `NonFiniteError` naming the first question with a score that is NaN or infinite."""
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        wrong = questions[int(np.argmin(finite))]
        raise NonFiniteError(f"the encoder's scores for question '{wrong.id}' ({wrong.language}) are not finite")
