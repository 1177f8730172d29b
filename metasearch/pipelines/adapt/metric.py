"""A query adapter in closed form: directions in which right answers vary count less.

Let a right passage p of a query q have the difference p − q, and let a page in one language have the difference m − m̄
of its mean vector from the mean over its translations. With the second moments S of both, scaled to a mean eigenvalue
of 1, and the identity where there is nothing to learn from:

    A = (I + α S_labels + β S_translations)⁻¹

The score of a passage d is then qᵀ A d. This is within-class covariance normalisation (Hatch et al. 2006,
"Within-Class Covariance Normalization for SVM-based Speaker Recognition"), with shrinkage to the identity, on the side
of the query alone. Differences from a query are not centred: passages differ from queries in the same way, too.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Matrix = NDArray[np.float64]

LABELS, TRANSLATIONS = 0.25, 1.0
"""α and β; chosen on four draws of labels of one collection: docs/results/adaptation.md."""


def metric_adapter(
    labels: Vectors, translations: Vectors, alpha: float = LABELS, beta: float = TRANSLATIONS
) -> Vectors:
    """Return the matrix A, `(D, D)`.

    Args:
        labels: differences of right passages from their queries, `(n, D)`.
        translations: differences of pages from the means of their translations, `(m, D)`; m may be 0.
        alpha: weight of labels.
        beta: weight of translations.
    """
    inverse = np.eye(labels.shape[1]) + alpha * second_moment(labels) + beta * second_moment(translations)
    return np.linalg.inv(inverse).astype(np.float32)


def second_moment(differences: Vectors) -> Matrix:
    """Return the second moment of differences `(n, D)` with a mean eigenvalue of 1, `(D, D)`; zeros without any."""
    exact = differences.astype(np.float64)
    moment: Matrix = exact.T @ exact
    size = np.trace(moment) / len(moment)
    return moment / size if size > 0 else moment


def around_mean(pages: Sequence[Vectors]) -> Vectors:
    """Return the differences of the means of a page's passages in each language, `(passages, D)` each, from their mean.

    A page without translations has none.
    """
    means = np.stack([own.mean(0) for own in pages])
    return means - means.mean(0) if len(pages) > 1 else means[:0]
