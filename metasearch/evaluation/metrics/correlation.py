"""Metrics of similarity: correlations of predicted with gold scores."""

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation.metrics.base import Metric


def pearson(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return r for `(N,)` and `(N,)`; errors as `require_defined`."""
    from scipy import stats  # takes half a second, which commands that only read declarations need not wait for

    require_defined(predicted, gold)
    return float(stats.pearsonr(predicted, gold).statistic)


def require_defined(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> None:
    """Check predicted and gold scores, `(N,)` each, for any correlation."""
    for name, values in (("predicted", predicted), ("gold", gold)):
        if not np.isfinite(values).all():
            raise NonFiniteError(f"correlation is undefined: a {name} score is not finite")
        # scipy only warns of a constant side and returns NaN.
        if len(values) < 2 or np.ptp(values) == 0:
            raise DataError(f"correlation is undefined: the {len(values)} {name} scores are constant")


METRIC_PEARSON = Metric("similarity", pearson)
"""Pearson's r of predicted with gold similarity, the measure of SemEval-2017 task 1 (Cer et al. 2017).

r = Σ (p − p̄)(g − ḡ) / √(Σ (p − p̄)² · Σ (g − ḡ)²)
"""


def spearman(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return ρ for `(N,)` and `(N,)`; errors as `require_defined`."""
    from scipy import stats  # takes half a second, which commands that only read declarations need not wait for

    require_defined(predicted, gold)
    return float(stats.spearmanr(predicted, gold).statistic)


METRIC_SPEARMAN = Metric("similarity", spearman)
"""Spearman's ρ of predicted with gold similarity: Pearson's r of their ranks, ties at the middle of their ranks.

Spearman 1904; recommended for sentence similarity by Reimers, Beyer & Gurevych 2016.
"""
