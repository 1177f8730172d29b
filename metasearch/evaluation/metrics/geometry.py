"""Geometry of sentence vectors: mean cosine, spread and effective rank, which fall or rise when vectors collapse.

All three are of directions: every vector is first divided by its length, in float64.
"""

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, NonFiniteError

Vectors = NDArray[np.floating]


def mean_pairwise_cosine(vectors: Vectors) -> float:
    """Return the mean cosine of all pairs of two vectors: 1 when all are the same, about 0 when they are spread out.

    With unit vectors u it is (|Σ u|² − N) / (N (N − 1)), so no pair is looked at: O(N D). One vector alone gives 1.

    Args:
        vectors: sentence vectors, `(N, D)`, N ≥ 1.

    Raises:
        DataError: there are no vectors.
        NonFiniteError: a vector is not finite or has length 0.
    """
    units = _units(vectors)
    count = len(units)
    if count == 1:
        return 1.0
    total = units.sum(0)
    return float((total @ total - count) / (count * (count - 1)))


def spread(vectors: Vectors) -> float:
    """Return the root of the mean squared distance of the unit vectors to their mean m, which is √(1 − |m|²).

    0 when all are the same, 1 when their mean is the origin. Errors as `mean_pairwise_cosine`.

    Args:
        vectors: sentence vectors, `(N, D)`, N ≥ 1.
    """
    # By the distances and not by 1 − |m|², which loses half of the digits where the vectors are nearly the same.
    return float(np.sqrt(np.square(_centred(vectors)).sum(1).mean()))


def effective_rank(vectors: Vectors) -> float:
    """Return how many directions the vectors differ in (Roy & Vetterli 2007, "The effective rank", definition 1).

    It is exp(−Σ p log p) with p = σ / Σ σ, where σ are the singular values of the unit vectors less their mean. The
    paper does not take the mean away; here it is taken, so that a part that all vectors share does not count. The value
    is between 1 and min(N − 1, D), and 0, the rank of a zero matrix, where all vectors are the same or there is one.
    Errors as `mean_pairwise_cosine`. Exact, O(N D min(N, D)).

    Args:
        vectors: sentence vectors, `(N, D)`, N ≥ 1.
    """
    centred = _centred(vectors)
    values = np.linalg.svd(centred, compute_uv=False)
    # Singular values that are rounding of a zero. Before they were centred the unit vectors had the Frobenius norm √N.
    noise = max(centred.shape) * np.finfo(np.float64).eps * np.sqrt(len(centred))
    values = values[values > noise]
    if len(values) == 0:
        return 0.0
    share = values / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def _units(vectors: Vectors) -> NDArray[np.float64]:
    if len(vectors) == 0:
        raise DataError("there are no vectors to measure")
    wide = np.asarray(vectors, dtype=np.float64)
    finite = np.isfinite(wide).all(1)
    if not finite.all():
        raise NonFiniteError(f"vector {int(np.argmin(finite))} of {len(wide)} is not finite")
    # By the largest entry first: the square of a very small or very large entry would leave the range of a float.
    largest = np.abs(wide).max(1, keepdims=True)
    if not largest.all():
        raise NonFiniteError(f"vector {int(np.argmin(largest))} of {len(wide)} has length 0 and so no direction")
    scaled = wide / largest
    units: NDArray[np.float64] = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return units


def _centred(vectors: Vectors) -> NDArray[np.float64]:
    units = _units(vectors)
    centred: NDArray[np.float64] = units - units.mean(0)
    return centred
