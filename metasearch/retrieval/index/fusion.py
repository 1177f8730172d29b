"""Reciprocal rank fusion (Cormack et al. 2009): one ranking from several that score in different units."""

from collections.abc import Sequence

import numpy as np

from metasearch.retrieval.index.base import Rows, Scores

CONSTANT = 60
"""k of the paper: how little the very first ranks count above those that follow."""


def fuse(rankings: Sequence[Rows], top: int, constant: int = CONSTANT) -> tuple[Rows, Scores]:
    """Return the best rows over several rankings and their scores, best first, `(K,)` each.

    A row has the score Σ 1 / (k + rank) over the rankings that have it, ranks counted from 1. Of equal scores the lower
    row comes first.

    Args:
        rankings: rows, best first, each at most once, `(n,)` each.
        top: how many are wanted; K is fewer where the rankings have fewer.
        constant: k.

    Example:
        >>> rows, scores = fuse([np.array([7, 3]), np.array([3])], top=2)
        >>> rows, scores == np.float32([1 / 62 + 1 / 61, 1 / 61])
        (array([3, 7]), array([ True,  True]))
    """
    if not rankings:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    shares = np.concatenate([1 / (constant + np.arange(1, len(ranking) + 1)) for ranking in rankings])
    rows, which = np.unique(np.concatenate(rankings), return_inverse=True)
    scores = np.bincount(which, shares, minlength=len(rows)).astype(np.float32)
    order = np.lexsort((rows, -scores))[:top]
    return rows[order].astype(np.int64), scores[order]
