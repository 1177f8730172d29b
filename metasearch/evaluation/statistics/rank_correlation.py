"""Do a question's translations rank candidates alike? Mean rank correlation after Yang et al. (2025).

Yang, Jiang & Baldwin (arXiv:2509.06195): the correlation RC of a question in languages a and b is Spearman's, of the
two rankings of the documents; its mean over the other languages b, and then over questions and languages a, is MRC. The
paper does not define RC for documents that only one of two lists of length k has; we do here.

Compared are the rankings of the U candidates in the union of both tops, k ≤ U ≤ 2k: a candidate that a top lacks
is below it, at the mean t = (k + 1 + U) / 2 of the places k + 1 to U that such candidates share. With a_c and b_c the
places of candidate c, and m = (U + 1) / 2 their mean,

    RC = Σ_c (a_c − m)(b_c − m) / Σ_c (a_c − m)²

It is 1 for equal tops, −1 for the same candidates in reverse, and −6k² / (7k² − 1), about −0.86, for disjoint tops.

Shapes: N questions, P pairs of rankings, K places of a top, A languages of questions.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Values = NDArray[np.float64]

_CELLS = 2**22
"""Comparisons of candidates that are held at once, 4 MiB of them."""


def rank_correlations(first: Counts, second: Counts) -> Values:
    """Return RC for each pair of top lists, `(P, K)` and `(P, K)` candidates in order → `(P,)`.

    NaN where there is one candidate in all, of which any two rankings are equal.

    >>> rank_correlations(np.array([[7, 8, 9], [7, 8, 9]]), np.array([[7, 9, 8], [9, 8, 7]]))   # 1 − 6 · 2 / (3 · 8)
    array([ 0.5, -1. ])
    """
    step = max(1, _CELLS // max(1, first.shape[1] ** 2))
    parts = [_correlations(first[i : i + step], second[i : i + step]) for i in range(0, len(first), step)]
    return np.concatenate([np.zeros(0), *parts])


def by_language(top: Counts, ids: Sequence[str], groups: Counts, size: int) -> Values:
    """Return the mean rank correlation between questions and their translations, per language, `(A,)`.

    `top` has the highest ranked candidates of each question, `(N, K)`; translations share an id; `groups` is the index
    of the language of each question, `(N,)`, and `size` is A. NaN for a language without translated questions.
    """
    number = {name: i for i, name in enumerate(dict.fromkeys(ids))}
    row_of = np.full((len(number), size), -1)
    row_of[[number[name] for name in ids], groups] = np.arange(len(ids))
    total, count = np.zeros(row_of.shape), np.zeros(row_of.shape)
    for a, b in combinations(range(size), 2):
        both = np.flatnonzero((row_of[:, [a, b]] >= 0).all(1))
        found = rank_correlations(top[row_of[both, a]], top[row_of[both, b]])
        defined = ~np.isnan(found)
        for language in (a, b):
            total[both[defined], language] += found[defined]
            count[both[defined], language] += 1
    means = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    asked = (count > 0).sum(0)
    values: Values = np.divide(means.sum(0), asked, out=np.full(size, np.nan), where=asked > 0)
    return values


def _correlations(first: Counts, second: Counts) -> Values:
    k = first.shape[1]
    equal = first[:, :, None] == second[:, None, :]
    union = 2 * k - equal.sum((1, 2))
    below, mean = (k + 1 + union)[:, None] / 2, (union + 1)[:, None] / 2
    places = np.arange(1, k + 1) - mean
    # Candidates of the first top at their places in the second; then those that the second has alone.
    there = np.where(equal.any(2), equal.argmax(2) + 1, below) - mean
    alone = ~equal.any(1)
    products = (places * there).sum(1) + ((below - mean) * places * alone).sum(1)
    squares = (places**2).sum(1) + (union - k) * (below - mean)[:, 0] ** 2
    values: Values = np.divide(products, squares, out=np.full(len(first), np.nan), where=squares > 0)
    return values
