"""Changes to vectors and scores of a pool after encoding: neighbours of other languages, and balanced scores."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Document expansion across languages: candidates move towards their nearest ones in other languages. The mean of a text
# and its translations has less noise than one of them. Nothing marks translations, but few other texts are as similar:
# with the cube of its cosine as weight, another neighbour changes little.
#
# Database augmentation in image search (Turcot and Lowe 2009; Arandjelović and Zisserman 2012), with the weights of
# α-weighted expansion, α = 3 (Radenović et al. 2019, "Fine-tuning CNN image retrieval with no human annotation",
# section 5.3). One neighbour in each other language, by vectors without their language's mean, is ours.

ALPHA = 3.0
_CELLS = 2**24
"""Cosines that are held at once, 64 MiB of them."""

Vectors = NDArray[np.float32]


def expanded(vectors: Vectors, languages: NDArray[np.int64], alpha: float = ALPHA) -> Vectors:
    """Return c_i + Σ_l max(0, s_il)^α c_n(i,l), normalised, over languages l other than candidate i's.

    n(i, l) is the candidate of language l nearest to candidate i, the first of equal ones, and s_il the cosine of the
    two after each language's mean vector is subtracted. `vectors` are unit vectors `(C, D)`, `languages` their numbers
    `(C,)`.
    """
    own = {int(code): np.flatnonzero(languages == code) for code in np.unique(languages)}
    moved, centred = vectors.copy(), np.empty_like(vectors)
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
            moved[some] += weights[:, None] * vectors[rows[nearest]]
    return _unit(moved)


def _unit(vectors: Vectors) -> Vectors:
    """Return vectors of length one; one without a direction, such as a lone text less its mean, stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 1e-6, lengths, np.float32(np.inf))).astype(np.float32)


# Scores balanced between languages: s(q, c) − β · max s(q, c'), c' in the language of c, β = ½.
#
# Candidates of one language score higher for a question than others (language bias). A neutral map removes
# the part that all questions share; the best score of a language shows the part of this question. If a language has no
# answer, half of its gap to the best language remains; β = 1 would make the best of all languages equal.
#
# Scores of several lists are often normalised before merging (Montague and Aslam 2001, "Relevance score normalization
# for metasearch"; Savoy and Berger 2005, "Selection and merging strategies for multilingual information retrieval").
# Subtracting half of the best is ours.

SHARE = 0.5
"""β; chosen on the dev part of one fold of LAReQA, with and without translations in the pool: benchmarks/README.md."""

Scores = NDArray[np.float32]
Indices = NDArray[np.int64]


def balance(scores: Scores, languages: Sequence[Indices]) -> None:
    """Balance scores `(Q, C)` in place; `languages` holds the column numbers of each language."""
    for columns in languages:
        own = scores[:, columns]
        scores[:, columns] = own - np.float32(SHARE) * own.max(1, keepdims=True)
