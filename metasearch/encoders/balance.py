"""Scores balanced between languages: each is measured from the best score of its language for the same question.

    s(q, c) − β · max s(q, c'), c' in the language of c, β = ½

Candidates of one language score higher for a question than those of another, whatever they say (language bias): vectors
keep some of their language, and a question is near its own. A map takes away what is the same for all questions; the
best score of a language says what is left for this one. Where a language has an answer, its best is likely one. Where
it has none, its best is lifted by half of what it lacks, no further: with β = 1 the best of all languages would be
equal.

Scores of several lists have long been normalised before the lists are merged (Montague and Aslam 2001, "Relevance score
normalization for metasearch"; for lists of several languages Savoy and Berger 2005, "Selection and merging strategies
for multilingual information retrieval"). Half of the best as what is subtracted is ours.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SHARE = 0.5
"""β; chosen on the dev part of one fold of LAReQA, with and without translations in the pool: benchmarks/README.md."""

Scores = NDArray[np.float32]
Indices = NDArray[np.int64]


def balance(scores: Scores, languages: Sequence[Indices]) -> None:
    """Balance scores in place; but for rounding, the order within a language stays what it was.

    Args:
        scores: of C candidates for each of Q questions, `(Q, C)`.
        languages: indices of the candidates of each language, all of which are at least one.
    """
    for columns in languages:
        own = scores[:, columns]
        scores[:, columns] = own - np.float32(SHARE) * own.max(1, keepdims=True)


def merged(rankings: Sequence[tuple[Indices, Scores]], top: int) -> tuple[Indices, Scores]:
    """Return the best of rankings of one language each, by balanced scores, best first, `(K,)` each.

    Args:
        rankings: numbers and scores of the best candidates of each language, best first, `(n,)` each. The best `top` of
            each are enough, as the order within a language stays.
        top: how many are wanted; K is fewer where there are fewer. Of equal scores the lower number comes first.
    """
    numbers = np.concatenate([np.zeros(0, np.int64), *(found for found, _ in rankings)])
    own = [scores - np.float32(SHARE) * scores[:1] for _, scores in rankings]
    scores = np.concatenate([np.zeros(0, np.float32), *own])
    order = np.lexsort((numbers, -scores))[:top]
    return numbers[order], scores[order]
