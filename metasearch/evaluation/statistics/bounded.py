"""The interval of a mean of bounded values, such as scores from 0 to 1."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metasearch.evaluation.statistics.paired import PairedTest, clustered_test

_FEW = 5
"""Clusters away from the end below which Student's interval is not taken."""


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
