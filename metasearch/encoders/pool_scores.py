"""Changes to vectors and scores of a pool after encoding: neighbours of other languages, and balanced scores."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

# Document expansion across languages: candidates move towards their nearest ones in other languages.
#
# Where a pool holds translations of a text, each of them says something about what the text means, and their mean says
# it
# with less noise than one alone. Nothing tells which candidates are translations, but few others are as alike: with the
# cube of its cosine as weight, a neighbour that is no translation changes little.
#
# Known from image search as database augmentation (Turcot and Lowe 2009; Arandjelović and Zisserman 2012), with the
# weights of α-weighted expansion, α = 3 (Radenović et al. 2019, "Fine-tuning CNN image retrieval with no human
# annotation", section 5.3). One neighbour in each other language, by vectors without their language's mean, is ours.

ALPHA = 3.0
_CELLS = 2**24
"""Cosines that are held at once, 64 MiB of them."""

Vectors = NDArray[np.float32]
Neighbours = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Candidates i, their neighbours n(i, l) in a language l, and the weights max(0, s_il)^α, `(b,)` each."""


def expanded(vectors: Vectors, languages: NDArray[np.int64], alpha: float = ALPHA) -> Vectors:
    """Return c_i + Σ_l max(0, s_il)^α c_n(i,l), normalised, over languages l other than candidate i's.

    n(i, l) is the candidate of language l nearest to candidate i, the first of equal ones, and s_il the cosine of the
    two after each language's mean vector is subtracted. `vectors` are unit vectors `(C, D)`, `languages` their numbers
    `(C,)`.
    """
    moved = vectors.copy()
    for rows, nearest, weights in neighbours(vectors, languages, alpha):
        moved[rows] += weights[:, None] * vectors[nearest]
    return _unit(moved)


def neighbours(vectors: Vectors, languages: NDArray[np.int64], alpha: float = ALPHA) -> Iterator[Neighbours]:
    """Yield the terms of the sum of `expanded`, some candidates and one other language at a time, none twice."""
    own = {int(code): np.flatnonzero(languages == code) for code in np.unique(languages)}
    centred = np.empty_like(vectors)
    for rows in own.values():
        centred[rows] = _unit(vectors[rows] - vectors[rows].mean(0))
    for code, rows in own.items():
        others = np.flatnonzero(languages != code)
        there, step = centred[rows].T, max(1, _CELLS // len(rows))
        for start in range(0, len(others), step):
            some = others[start : start + step]
            cosines = centred[some] @ there
            nearest = cosines.argmax(1)
            weights = np.maximum(cosines[np.arange(len(some)), nearest], 0) ** np.float32(alpha)
            yield some, rows[nearest], weights


def _unit(vectors: Vectors) -> Vectors:
    """Return vectors of length one; one without a direction, such as a lone text less its mean, stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 1e-6, lengths, np.float32(np.inf))).astype(np.float32)


# Scores balanced between languages: each is measured from the best score of its language for the same question.
#
#     s(q, c) − β · max s(q, c'), c' in the language of c, β = ½
#
# Candidates of one language score higher for a question than those of another, whatever they say (language bias):
# vectors
# keep some of their language, and a question is near its own. A map takes away what is the same for all questions; the
# best score of a language says what is left for this one. Where a language has an answer, its best is likely one. Where
# it has none, its best is lifted by half of what it lacks, no further: with β = 1 the best of all languages would be
# equal.
#
# Scores of several lists have long been normalised before the lists are merged (Montague and Aslam 2001, "Relevance
# score
# normalization for metasearch"; for lists of several languages Savoy and Berger 2005, "Selection and merging strategies
# for multilingual information retrieval"). Half of the best as what is subtracted is ours.

SHARE = 0.5
"""β; chosen on the dev part of one fold of LAReQA, with and without translations in the pool: benchmarks/README.md."""

Scores = NDArray[np.float32]
Indices = NDArray[np.int64]


def balance(scores: Scores, languages: Sequence[Indices]) -> None:
    """Balance scores `(Q, C)` in place; `languages` holds the column numbers of each language."""
    for columns in languages:
        own = scores[:, columns]
        scores[:, columns] = own - np.float32(SHARE) * own.max(1, keepdims=True)


def merged(rankings: Sequence[tuple[Indices, Scores]], top: int) -> tuple[Indices, Scores]:
    """Return the best `top` of rankings of one language each by balanced scores, best first, `(K,)` each.

    Each ranking has numbers and scores of its language's best `top` candidates, best first. Of equal scores the lower
    number comes first.
    """
    numbers = np.concatenate([np.zeros(0, np.int64), *(found for found, _ in rankings)])
    own = [scores - np.float32(SHARE) * scores[:1] for _, scores in rankings]
    scores = np.concatenate([np.zeros(0, np.float32), *own])
    order = np.lexsort((numbers, -scores))[:top]
    return numbers[order], scores[order]
