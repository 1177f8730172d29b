"""Document expansion across languages: candidates move towards their nearest ones in other languages.

Where a pool holds translations of a text, each of them says something about what the text means, and their mean says it
with less noise than one alone. Nothing tells which candidates are translations, but few others are as alike: with the
cube of its cosine as weight, a neighbour that is no translation changes little.

Known from image search as database augmentation (Turcot and Lowe 2009; Arandjelović and Zisserman 2012), with the
weights of α-weighted expansion, α = 3 (Radenović et al. 2019, "Fine-tuning CNN image retrieval with no human
annotation", section 5.3). One neighbour in each other language, by vectors without their language's mean, is ours.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

ALPHA = 3.0
_CELLS = 2**24
"""Cosines that are held at once, 64 MiB of them."""

Vectors = NDArray[np.float32]
Neighbours = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Candidates i, their neighbours n(i, l) in a language l, and the weights max(0, s_il)^α, `(b,)` each."""


def expanded(vectors: Vectors, languages: NDArray[np.int64], alpha: float = ALPHA) -> Vectors:
    """Return c_i + Σ_l max(0, s_il)^α c_n(i,l), normalised, for the languages l other than that of candidate i.

    n(i, l) is the candidate of language l that is most like candidate i, the first of equal ones, and s_il the cosine
    of the two after each language's mean vector is subtracted from its candidates.

    Args:
        vectors: unit vectors of the candidates, `(C, D)`.
        languages: number of the language of each candidate, `(C,)`.
        alpha: exponent; the larger it is, the less is taken of what is hardly a translation.
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
