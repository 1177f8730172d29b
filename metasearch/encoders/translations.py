"""What distinguishes a page from its translations counts less for a query; estimated from pages, without labels.

The vector of a page is the mean of its passages. With the differences of pages from the means of their translations,
and their second moment S, scaled to a mean eigenvalue of 1, a query q becomes

    normalise(A q),  A = (I + β S)⁻¹,  β = 2 m / (m + D)

for m differences. So few of them change little. The score of a passage d is then qᵀ A d up to a factor. This is
within-class covariance normalisation (Hatch et al. 2006, "Within-Class Covariance Normalization for SVM-based Speaker
Recognition") with a page and its translations as a class, and on the side of queries alone.

Notation used for tensor shapes: m differences, D dimensions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

LEAST = 20
"""Pages in several languages, below which nothing is estimated."""
_WEIGHT = 2.0
"""β for very many differences."""


def translation_map(groups: Sequence[Sequence[Vectors]]) -> Vectors:
    """Return the matrix A, `(D, D)`, from the passages `(n, D)` of each translation in each group."""
    differences = np.concatenate([around_mean(pages) for pages in groups])
    count, dimension = differences.shape
    weight = _WEIGHT * count / (count + dimension)
    inverse: Vectors = np.linalg.inv(np.eye(dimension) + weight * second_moment(differences)).astype(np.float32)
    return inverse


def around_mean(pages: Sequence[Vectors]) -> Vectors:
    """Return the differences of pages from the mean of all, `(pages, D)`, given the passages of each, `(n, D)`."""
    means = np.stack([own.mean(0) for own in pages])
    differences: Vectors = means - means.mean(0)
    return differences


def second_moment(differences: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the second moment of differences `(m, D)` with a mean eigenvalue of 1, `(D, D)`; zeros without any."""
    exact = differences.astype(np.float64)
    moment: NDArray[np.float64] = exact.T @ exact
    size = np.trace(moment) / len(moment)
    return moment / size if size > 0 else moment
