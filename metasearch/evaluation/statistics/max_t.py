"""One test of several differences: is any above 0? Corrected for their number by max-T (Westfall & Young 1993)."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_EXACT = 12
"""Clusters up to which all patterns of signs are taken; with more, as many random ones."""
_BLOCK = 256
_DIGITS = 12
"""Decimals of a difference of scores; what is left is rounding."""


def any_above_zero(differences: Array, clusters: Sequence[str]) -> float:
    """Return the p-value of the hypothesis that none of K differences has a mean above 0.

    `differences` are `(K, N)`, of N units in independent clusters. The statistic is the largest of the K cluster-robust
    t values, mean / √(Σ_g (s_g - n_g mean)²) with sum s_g over the n_g units of cluster g, without the factors that all
    share. Where the hypothesis holds with equality, the differences of a cluster are as likely with the other sign. So
    p is the share of patterns of signs, one sign for a cluster and all K differences, whose statistic is as large (the
    wild cluster bootstrap of Cameron, Gelbach & Miller 2008). One pattern for all K keeps how they depend on each
    other; Holm's correction has to assume the worst. It is exact for symmetric differences, few clusters and clusters
    of any size. With G clusters no p-value is below 1 / 2^G.
    """
    names = np.unique(np.asarray(clusters), return_inverse=True)[1]
    if not len(differences) or not len(names) or not names.max():
        return 1.0
    sizes: Array = np.bincount(names).astype(np.float64)
    sums: Array = np.array([np.bincount(names, weights=row) for row in np.round(differences, _DIGITS)]).T
    found = np.concatenate([_largest(signs, sums, sizes) for signs in _patterns(len(sizes))])
    observed = found[0]
    # Equal statistics may differ by rounding.
    return float(np.mean(found >= observed - 1e-9 * abs(observed) if np.isfinite(observed) else found >= observed))


@lru_cache(maxsize=8)
def _patterns(count: int) -> tuple[Array, ...]:
    """Return blocks of signs, `(patterns, clusters)`; the first pattern changes none, as observed."""
    if count <= _EXACT:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
        every = (1 - 2 * bits).astype(np.float64)
    else:
        # Always the same ones: labels decide the choice, and no seed.
        every = np.random.default_rng(0).choice([-1.0, 1.0], (2**_EXACT, count))
        every[0] = 1.0
    return tuple(np.split(every, range(_BLOCK, len(every), _BLOCK)))


def _largest(signs: Array, sums: Array, sizes: Array) -> Array:
    """Return the largest t value of each pattern of signs."""
    means = signs @ sums / sizes.sum()
    squares = (sums**2).sum(0)
    # Σ_g (s_g d_g - n_g mean)², multiplied out
    spread = squares - 2 * means * (signs @ (sums * sizes[:, None])) + means**2 * (sizes**2).sum()
    # Unchecked, differences that are equal in all clusters would have a spread of rounding.
    equal = spread <= 1e-12 * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(equal, np.sign(np.round(means, _DIGITS)) * np.inf, means / np.sqrt(spread))
    return np.asarray(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf).max(axis=1))
