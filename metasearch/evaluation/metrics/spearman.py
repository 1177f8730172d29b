"""Spearman's ρ of predicted with gold similarity: Pearson's r of their ranks, ties at the middle of their ranks.

Spearman 1904; recommended for sentence similarity by Reimers, Beyer & Gurevych 2016.
"""

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.metrics.base import Metric
from metasearch.evaluation.metrics.pearson import require_defined


def spearman(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return ρ of `(N,)` with `(N,)`; errors as `require_defined`."""
    from scipy import stats  # takes half a second, which commands that only read declarations need not wait for

    require_defined(predicted, gold)
    return float(stats.spearmanr(predicted, gold).statistic)


METRIC = Metric("similarity", spearman)
