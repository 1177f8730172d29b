"""Linear maps of queries, estimated without labels: their centre, and the translations of pages.

**Centre.** Queries are shorter than passages and have another mean. With the mean of passages, all queries would keep
the same error, which outweighs the content of short ones. So the projection (`metasearch.encoders.maps`) subtracts a
centre of their own from queries (`query_centre`).

**Translations.** The vector of a page is the mean of its first passages. With the differences of pages from the means
of their translations, and their second moment S, scaled to a mean eigenvalue of 1, a query q becomes

    normalise(A q),  A = (I + β S)⁻¹,  β = ½ m / (m + D)

for m differences: what distinguishes a page from its translations counts less, and few differences change little. The
score of a passage d is then qᵀ A d up to a factor. This is within-class covariance normalisation (Hatch et al. 2006,
"Within-Class Covariance Normalization for SVM-based Speaker Recognition") with a page and its translations as a class,
and on the side of queries alone.

Notation used for tensor shapes: n texts, D dimensions, m differences.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.maps import Exact, Projection

Vectors = NDArray[np.float32]

_TOWARDS = 0.5
"""How far the centre of queries goes from that of passages to that of made-up queries."""
_PRIOR = 10
"""Real queries whose mean has the same weight as the centre without any."""
_WEIGHT = 0.5
"""β for very many differences."""


def centred(vectors: Mapping[str, NDArray[Any]]) -> Projection:
    """Return the projection without a direction for unit vectors `(n, D)` by language: it only centres."""
    means = np.stack([found.astype(np.float64).mean(0) for found in vectors.values()])
    return Projection(means.mean(0), np.zeros((0, means.shape[1])), tuple(vectors))


def query_centre(projection: Projection, spans: Mapping[str, NDArray[Any]]) -> Exact:
    """Return the centre of queries without any query, c₀ = g + ½ (m₀ − g), `(D,)`.

    Args:
        projection: with the centre g of passages.
        spans: by language, the vectors `(n, D)` of short spans of passages, encoded as queries; m₀ is the mean over
            languages of their means.
    """
    mean = np.stack([found.astype(np.float64).mean(0) for found in spans.values()]).mean(0)
    return cast(Exact, projection.centre + _TOWARDS * (mean - projection.centre))


def shrunk_centre(centre: Exact, mean: Exact, count: int) -> Exact:
    """Return a centre of queries `(D,)`, moved towards the mean of n queries: c + n / (n + 10) (mean − c)."""
    return centre + count / (count + _PRIOR) * (mean - centre)


def mapped(queries: NDArray[Any], matrix: NDArray[Any]) -> Vectors:
    """Return unit vectors of queries `(n, D)` through a matrix `(D, D)`; a vector of zeros stays one."""
    through = queries.astype(np.float64) @ matrix.T.astype(np.float64)
    lengths = np.linalg.norm(through, axis=1, keepdims=True)
    return np.asarray(through / np.where(lengths > 0, lengths, 1.0), np.float32)


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
