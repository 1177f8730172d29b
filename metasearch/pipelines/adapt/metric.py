"""A query adapter in closed form: directions in which a query and its right answers differ count less.

Three kinds of differences show such directions. With the unit vector o of the offset, which is the difference of the
mean document from the mean query, and second moments S, each scaled to a mean eigenvalue of 1:

    A = (I + ω o oᵀ + β S_translations + α S_answers)⁻¹

The offset needs no answers. `translations` are differences of pages from the mean of their translations, which need no
labels. `answers` are differences of right passages from their queries, less their mean. Their weight α grows with the
number n of queries: α = ¼ n / (n + 128).

The score of a passage d is then qᵀ A d. This is within-class covariance normalisation (Hatch et al. 2006,
"Within-Class Covariance Normalization for SVM-based Speaker Recognition"), with shrinkage to the identity, and on the
side of queries alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Matrix = NDArray[np.float64]

OFFSET, TRANSLATIONS, ANSWERS = 20.0, 1.0, 0.25
"""ω, β, and α for very many queries; chosen on two draws of titles of GNOME help: docs/results/adaptation.md."""
_HALF = 128
"""Queries with which answers have half of their weight."""


def metric_adapter(offset: Vectors, translations: Vectors, answers: Vectors, queries: int = 0) -> Vectors:
    """Return the matrix A, `(D, D)`; it is the identity where there is no difference.

    Args:
        offset: mean document less mean query, `(D,)`.
        translations: differences of pages from the means of their translations, `(m, D)`; m may be 0.
        answers: differences of right passages from their queries, `(a, D)`; a may be 0.
        queries: number n of these queries.
    """
    inverse = np.eye(len(offset)) + TRANSLATIONS * second_moment(translations)
    if offset.any():
        unit = offset.astype(np.float64) / np.linalg.norm(offset.astype(np.float64))
        inverse += OFFSET * np.outer(unit, unit)
    if len(answers):
        centred = answers.astype(np.float64) - answers.mean(0, dtype=np.float64)
        inverse += ANSWERS * queries / (queries + _HALF) * second_moment(centred)
    return np.linalg.inv(inverse).astype(np.float32)


def second_moment(differences: NDArray[np.floating]) -> Matrix:
    """Return the second moment of differences `(n, D)` with a mean eigenvalue of 1, `(D, D)`; zeros without any."""
    exact = differences.astype(np.float64)
    moment: Matrix = exact.T @ exact
    size = np.trace(moment) / len(moment)
    return moment / size if size > 0 else moment


def around_mean(pages: Sequence[Vectors]) -> Vectors:
    """Return the differences of means of pages from their mean, `(P, D)`, given the passages of each, `(passages, D)`.

    A page without translations has none.
    """
    means = np.stack([own.mean(0) for own in pages])
    return means - means.mean(0) if len(pages) > 1 else means[:0]
