"""Tests of several differences: is any above 0, and which? Corrected for their number (Westfall & Young 1993).

Beside them, `bounded_test` is the test of one difference between scores, which are bounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metasearch.evaluation.statistics.paired import PairedTest, clustered_test

Array = NDArray[np.float64]

_EXACT = 12
"""Clusters up to which all patterns of signs are taken; with more, as many random ones."""
_SAMPLES = 2000
"""Bootstrap samples of clusters."""
_DIGITS = 12
"""Decimals of a difference of scores; anything smaller is rounding."""
_FEW = 5
"""Clusters away from the end below which Student's interval is not taken."""
UNSEEN_LOSS = 0.2
"""The loss of a cluster that may be rare and unseen, such as from a right page on rank 3 to one on rank 8."""


def any_above_zero(differences: Array, clusters: Sequence[str]) -> float:
    """Return the p-value of the hypothesis that none of K differences has a mean above 0, if they are symmetric.

    `differences` are `(K, N)`, of N units in independent clusters. The statistic is the largest of the K cluster-robust
    t values, mean / √(Σ_g (s_g - n_g mean)²) with sum s_g over the n_g units of cluster g, without the factors that all
    share. Where the hypothesis holds with equality, the differences of a cluster are as likely with the other sign. So
    p is the share of patterns of signs, one sign for a cluster and all K differences, whose statistic is as large (the
    wild cluster bootstrap of Cameron, Gelbach & Miller 2008). One pattern for all K keeps how they depend on each
    other; Holm's correction has to assume the worst. It is exact for symmetric differences, few clusters and clusters
    of any size. With G clusters no p-value is below 1 / 2^G.
    """
    sums, sizes = _by_cluster(differences, clusters)
    if not len(differences) or len(sizes) < 2:
        return 1.0
    found = _signed(sums, sizes).max(axis=1)
    return float(np.mean(_as_large(found, found[0])))


@dataclass(frozen=True)
class Gains:
    """Tests of K gains whose differences may be skewed, such as many small gains with a few large losses.

    A gain needs three tests. Signs, as in `any_above_zero`, are exact for symmetric differences and few clusters. The
    bootstrap of t over clusters, from differences less their mean, corrects for skewness that the clusters show (Hall
    1992, "The Bootstrap and Edgeworth Expansion"). Both are blind to a loss that no cluster shows, so `unseen`, the
    `chance_unseen` of `UNSEEN_LOSS`, has to be small. A larger and rarer loss stays unseen, see `outweighed`. The other
    fields are t values, observed `(K,)`, of patterns of signs `(P, K)`, and of bootstrap samples `(B, K)`.
    """

    observed: Array
    signed: Array
    drawn: Array
    unseen: Array

    @classmethod
    def of(cls, differences: Array, clusters: Sequence[str]) -> Self:
        """Return the tests of differences `(K, N)`."""
        sums, sizes = _by_cluster(differences, clusters)
        signed, means = _signed(sums, sizes), sums.sum(0) / sizes.sum()
        drawn = _drawn(np.round(sums - sizes[:, None] * means, _DIGITS), sizes)
        return cls(signed[0], signed, drawn, chance_unseen(UNSEEN_LOSS, means, len(sizes) if len(sizes) > 1 else 0))

    def adjusted(self, lines: Sequence[int]) -> Array:
        """Return the p-values of some gains, corrected for their number."""
        signed, drawn = (values[:, lines].max(axis=1) for values in (self.signed, self.drawn))
        by_signs = [np.mean(_as_large(signed, t)) for t in self.observed[lines]]
        by_draws = [np.mean([True, *_as_large(drawn, t)]) for t in self.observed[lines]]
        return np.asarray(np.maximum(np.maximum(by_signs, by_draws), self.unseen[lines]))

    def p(self) -> float:
        """Return the p-value of the hypothesis that there is no gain."""
        return float(self.adjusted(range(len(self.observed))).min()) if len(self.observed) else 1.0

    def significant(self, level: float) -> list[int]:
        """Return the significant gains, by step-down: the surest leaves, and the others are tested again.

        With a chance of `level` at most, one is none in truth (Romano & Wolf 2005, "Exact and Approximate Stepdown").
        """
        left, found = [*range(len(self.observed))], list[int]()
        while left and (values := self.adjusted(left)).min() < level:
            found.append(left.pop(int(values.argmin())))
        return sorted(found)


def chance_unseen(loss: float, means: Array, clusters: int) -> Array:
    """Return the chance that no cluster shows a loss that undoes a gain, (L / (gain + L))^G, for gains `(K,)`.

    A share q of clusters that loses L undoes the gain of the others at q = gain / (gain + L).
    """
    return np.asarray((loss / (loss + np.maximum(means, 0))) ** clusters)


def outweighed(gain: float, clusters: int, level: float) -> tuple[float, float]:
    """Return a share q of clusters that G can miss, (1 - q)^G = level, and the loss that undoes the gain at q."""
    seen = level ** (1 / clusters)
    return 1 - seen, gain * seen / (1 - seen)


def _by_cluster(differences: Array, clusters: Sequence[str]) -> tuple[Array, Array]:
    """Return the sums of each cluster, `(G, K)`, and the numbers of its units, `(G,)`."""
    names = np.unique(np.asarray(clusters), return_inverse=True)[1]
    sizes: Array = np.bincount(names).astype(np.float64)
    sums = [np.bincount(names, weights=row) for row in np.round(differences, _DIGITS)]
    return np.array(sums, np.float64).reshape(len(sums), len(sizes)).T, sizes


def _as_large(found: Array, observed: float) -> NDArray[np.bool_]:
    # Equal statistics may differ by rounding.
    return np.asarray(found >= observed - 1e-9 * abs(observed) if np.isfinite(observed) else found >= observed)


@lru_cache(maxsize=8)
def _patterns(count: int) -> Array:
    """Return patterns of signs, `(patterns, clusters)`; the first pattern changes none, as observed."""
    if count <= _EXACT:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
        return (1 - 2 * bits).astype(np.float64)
    # Always the same ones: labels decide the choice, and no seed.
    every = np.random.default_rng(0).choice([-1.0, 1.0], (2**_EXACT, count))
    every[0] = 1.0
    return every


def _signed(sums: Array, sizes: Array) -> Array:
    """Return the t values of patterns of signs, `(patterns, K)`."""
    signs, squares = _patterns(len(sizes)), (sums**2).sum(0)
    return _t(signs @ sums, signs @ (sums * sizes[:, None]), squares, sizes.sum(), (sizes**2).sum())


@lru_cache(maxsize=4)
def _samples(count: int) -> Array:
    """Return how often each cluster is in each bootstrap sample, `(samples, clusters)`."""
    return np.random.default_rng(0).multinomial(count, [1 / count] * count, _SAMPLES).astype(np.float64)


def _drawn(sums: Array, sizes: Array) -> Array:
    """Return the t values of bootstrap samples, `(samples, K)`, for sums with a mean of 0."""
    drawn, column = _samples(len(sizes)), sizes[:, None]
    return _t(drawn @ sums, drawn @ (sums * column), drawn @ sums**2, drawn @ column, drawn @ column**2)


def _t(totals: Array, products: Array, squares: Array, n: Array | float, n_squares: Array | float) -> Array:
    """Return t values from sums over clusters of s, s n, s², n and n²."""
    means = totals / n
    # Σ_g (s_g - n_g mean)², multiplied out
    spread = squares - 2 * means * products + means**2 * n_squares
    # Unchecked, differences that are equal in all clusters would have a spread of rounding.
    equal = spread <= 1e-12 * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(equal, np.sign(np.round(means, _DIGITS)) * np.inf, totals / np.sqrt(spread))
    return np.asarray(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf))


def bounded_test(
    values: NDArray[np.float64],
    baseline: NDArray[np.float64],
    clusters: Sequence[str],
    low: float,
    high: float,
    level: float = 0.95,
) -> PairedTest:
    """Return `clustered_test` with an interval for differences that are from `low` to `high`, of 95 % by default.

    Student's interval is cut at the ends. If all clusters are at one end it has no length, and if nearly all are, it is
    too short. There it is the interval of Clopper & Pearson (1934), with the mean as a share of G trials for G
    clusters of equal size. Clusters of n_g units count as G = (Σ n_g)² / Σ n_g² trials, from the variance of their mean
    (Kish 1965, "Survey Sampling"). It is exact where each cluster is at one of the ends; values between them vary less.
    For G clusters at the upper end it begins at `low + (high - low) · 0.025^(1/G)`.
    """
    test = clustered_test(values.tolist(), baseline.tolist(), clusters, level)
    if test.low is None or test.high is None:
        return test
    names, differences = np.unique(np.asarray(clusters), return_inverse=True)[1], values - baseline
    sizes = np.bincount(names)
    means = np.bincount(names, weights=differences) / sizes
    away = min(int((~np.isclose(means, end, rtol=0, atol=1e-12)).sum()) for end in (low, high))
    if away < min(_FEW, test.n / 2):
        share = (test.mean - low) / (high - low)
        first, last = _exact(share, float(sizes.sum() ** 2 / (sizes**2).sum()), (1 - level) / 2)
        return replace(test, low=low + (high - low) * first, high=low + (high - low) * last)
    return replace(test, low=max(low, test.low), high=min(high, test.high))


def _exact(share: float, trials: float, tail: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for a share of trials, with a probability outside at each end."""
    good = min(max(share, 0.0), 1.0) * trials
    low = float(special.betaincinv(good, trials - good + 1, tail)) if good > 0 else 0.0
    high = float(special.betaincinv(good + 1, trials - good, 1 - tail)) if good < trials else 1.0
    return low, high
