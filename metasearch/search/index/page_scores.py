"""Scores of pages from the scores of their passages, and of a page with its translations.

A page has the score of its best window of 4 consecutive passages, with a smooth maximum within the window:

    W = max over windows of (1/t) log mean(exp(t s))

A page of up to 4 passages is one window. For large t this is the best passage, for t → 0 the mean of the window. One
passage that is close to a query by chance counts less than two neighbours that are. The sharpness t belongs to the
scale of scores: t = 2 / σ, where σ is the standard deviation of a query's scores over passages.

A page and its translations have the same content, so each is evidence for the others. With the scores B of pages,
which are balanced between languages where searches balance them, a group of translations G has the score

    ½ B(page of G in the query's language, or the best) + ½ mean over pages p in G of B(p)

and a page p of it ½ B(p) + ½ mean over G. A page without translations is a group of its own.

Notation used for array shapes: Q queries, N passages in the order of their pages, P pages, G groups.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOW = 4
"""Consecutive passages that are scored together. With the sharpness and the weight of translations, it was chosen on
questions about three manuals, and titles of three sets of pages: docs/results/pages.md."""

_SHARPNESS = 2.0
"""t · σ."""

Scores = NDArray[np.floating[Any]]
Numbers = NDArray[np.int64]


def sharpness_for(scores: Scores) -> float:
    """Return t for the scores of queries, `(Q, N)`; 0 where scores do not differ, so that a window has its mean."""
    spread = float(scores.std(1).mean()) if scores.size else 0.0
    return _SHARPNESS / spread if spread > 0 else 0.0


def spread_of(sharpness: float) -> float:
    """Return the standard deviation σ of scores that a sharpness was set by; 0 for 0."""
    return _SHARPNESS / sharpness if sharpness else 0.0


def page_scores(scores: Scores, starts: Numbers, sharpness: float | None) -> Scores:
    """Return the score of each page, `(Q, P)`.

    Args:
        scores: of passages, `(Q, N)`, page by page.
        starts: the first passage of each page, `(P,)`, ascending from 0.
        sharpness: t; None takes the best passage of a page.

    Example:
        >>> page_scores(np.array([[0.0, 0.4, 0.4, 0.4, 0.4, 0.3]]), np.array([0, 5]), sharpness=None)
        array([[0.4, 0.3]])
        >>> page_scores(np.array([[0.0, 0.4, 0.4, 0.4, 0.4, 0.3]]), np.array([0, 5]), sharpness=0.0)
        array([[0.4, 0.3]])
    """
    best: Scores = np.maximum.reduceat(scores, starts, axis=1)
    if sharpness is None:
        return best
    scores, best = scores.astype(np.float64), best.astype(np.float64)
    sizes = np.diff(starts, append=scores.shape[1])
    page = np.repeat(np.arange(len(starts)), sizes)
    # Relative to the best of its page, so that nothing overflows.
    above = scores - best[:, page]
    values = np.exp(sharpness * above) if sharpness else above
    whole = np.add.reduceat(values, starts, axis=1) / sizes
    found = np.where(sizes <= WINDOW, whole, _best_windows(values, starts, page))
    return best + (np.log(found) / sharpness if sharpness else found)


def _best_windows(values: NDArray[np.float64], starts: Numbers, page: Numbers) -> NDArray[np.float64]:
    """Return the greatest mean of a window in each page, `(Q, P)`; -inf for a page that is shorter."""
    means = np.full_like(values, -np.inf, dtype=np.float64)
    if values.shape[1] >= WINDOW:
        last = values.shape[1] - WINDOW + 1
        inside = page[:last] == page[WINDOW - 1 :]
        sums = sum(values[:, i : last + i] for i in range(WINDOW)) / WINDOW
        means[:, :last] = np.where(inside, sums, -np.inf)
    found: NDArray[np.float64] = np.maximum.reduceat(means, starts, axis=1)
    return found


def group_means(scores: Scores, groups: Numbers) -> NDArray[np.float64]:
    """Return for each page the mean score of its group, itself included, `(Q, P)`.

    Args:
        scores: of pages, `(Q, P)`.
        groups: number of each page's group, from 0, `(P,)`.
    """
    sizes = np.bincount(groups)
    sums = np.stack([np.bincount(groups, row, len(sizes)) for row in scores]) if len(scores) else scores[:, :0]
    means: NDArray[np.float64] = (sums / np.maximum(sizes, 1))[:, groups]
    return means
