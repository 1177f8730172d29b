"""Rankings of a pool of candidates, and what is kept of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Candidate, Question
from metasearch.metrics.average_precision import ranks
from metasearch.results.kept import Ranking, Text

TOP = 20
"""How many of the highest ranked candidates are kept: as deep as mAP@20 looks."""


@dataclass(frozen=True)
class Search:
    """The scores of a pool for some questions.

    Attributes:
        questions: Q of them.
        scores: of questions and the pool's candidates, all finite, `(Q, C)`.
        relevant: columns of the candidates that are relevant to each question.
    """

    questions: tuple[Question, ...]
    scores: NDArray[np.float32]
    relevant: list[NDArray[np.int64]]

    @cached_property
    def ranks(self) -> list[NDArray[np.int64]]:
        """Ascending ranks of what is relevant to each question."""
        # Equal scores rank by index, which `ranks` and a stable sort of the negated scores agree on.
        return [ranks(row, list(found)) for row, found in zip(self.scores, self.relevant, strict=True)]


def joined(candidates: Sequence[Candidate], searches: Sequence[Search]) -> Ranking:
    """Return the rankings of searches through the same pool of all candidates as one."""
    languages = tuple(sorted({candidate.language for candidate in candidates}))
    spoken = np.array([languages.index(candidate.language) for candidate in candidates])
    is_language = spoken[:, None] == np.arange(len(languages))
    relevant, places, above, top, scores = [], [], [], [], []
    for search in searches:
        for row, found in zip(search.scores, search.relevant, strict=True):
            order = np.argsort(-row, kind="stable")
            at = np.sort(np.argsort(order)[found])
            counts = is_language[order].cumsum(0)[at]
            own = is_language[order[at]].cumsum(0)
            relevant.append(order[at])
            places.append(at + 1)
            above.append(counts - own)
            top.append(order[:TOP])
            scores.append(row[order[:TOP]])
    return Ranking(
        tuple(Text(q.id, q.language, q.text) for search in searches for q in search.questions),
        tuple(Text(c.id, c.language, c.shown or c.text) for c in candidates),
        languages,
        np.concatenate([[0], np.cumsum([len(found) for found in relevant])]).astype(np.int64),
        np.concatenate(relevant),
        np.concatenate(places),
        np.concatenate(above).astype(np.int64),
        np.stack(top),
        np.stack(scores).astype(np.float32),
    )
