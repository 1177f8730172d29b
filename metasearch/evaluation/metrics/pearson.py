"""Pearson's r of predicted with gold similarity, the measure of SemEval-2017 task 1 (Cer et al. 2017).

r = Σ (p − p̄)(g − ḡ) / √(Σ (p − p̄)² · Σ (g − ḡ)²)
"""

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.metrics.base import Metric
from metasearch.evaluation.metrics.correlation import require_defined


def pearson(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return r of `(N,)` with `(N,)`; errors as `require_defined`."""
    from scipy import stats  # takes half a second, which commands that only read declarations need not wait for

    require_defined(predicted, gold)
    return float(stats.pearsonr(predicted, gold).statistic)


METRIC = Metric("similarity", pearson)
