"""Chooses negatives by how hard they are (Schroff et al., 2015; MAML-Align paper, appendix B).

With d the Euclidean distance between unit vectors and m the margin of the triplet loss:

- easy: d(q, p) + m < d(q, n)
- semi-hard: d(q, p) < d(q, n) < d(q, p) + m   (the paper's line repeats a term)
- hard: d(q, n) < d(q, p)
"""

import logging
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Class = Literal["easy", "semi-hard", "hard"]
log = logging.getLogger(__name__)


def distances(anchor: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the Euclidean distances from a vector `(D,)` to vectors `(n, D)`, shape `(n,)`."""
    away: NDArray[np.float32] = np.linalg.norm(others - anchor, axis=1)
    return away


def choose(
    kind: Class,
    to_positive: float,
    to_negatives: NDArray[np.float32],
    margin: float,
    count: int,
    rng: np.random.Generator,
) -> list[int]:
    """Return the indices of `count` negatives of a class, drawn at random without replacement.

    Where the class has too few members, the ones nearest to the class follow, and a warning says so. `to_positive` is
    d(q, p), and `to_negatives` are d(q, n) of N ≥ count candidates n, `(N,)`.
    """
    lower, upper = {
        "easy": (to_positive + margin, np.inf),
        "semi-hard": (to_positive, to_positive + margin),
        "hard": (-np.inf, to_positive),
    }[kind]
    members = np.flatnonzero((lower < to_negatives) & (to_negatives < upper))
    chosen = [int(i) for i in rng.permutation(members)[:count]]
    if len(chosen) < count:
        log.warning("%d of %d negatives are %s; the nearest to that are taken for the rest", len(chosen), count, kind)
        # The distance to the interval: outside of it one of the two differences is not negative.
        outside = np.maximum(lower - to_negatives, to_negatives - upper)
        # They are chosen already.
        outside[members] = np.inf
        chosen += [int(i) for i in np.argsort(outside, kind="stable")[: count - len(chosen)]]
    return chosen
