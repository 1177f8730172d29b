"""Correlation of predicted with gold similarity (SemEval-2017 task 1)."""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from metasearch.errors import DataError, NonFiniteError


def pearson(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return Pearson's r of `(N,)` with `(N,)`.

    Raises:
        DataError: a side is constant or has fewer than two values, so that r is undefined.
        NonFiniteError: a value is NaN or infinite.
    """
    _require_defined(predicted, gold)
    return float(stats.pearsonr(predicted, gold).statistic)


def spearman(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> float:
    """Return Spearman's ρ of `(N,)` with `(N,)`; errors as `pearson`."""
    _require_defined(predicted, gold)
    return float(stats.spearmanr(predicted, gold).statistic)


def _require_defined(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> None:
    for name, values in (("predicted", predicted), ("gold", gold)):
        if not np.isfinite(values).all():
            raise NonFiniteError(f"correlation is undefined: a {name} score is not finite")
        if len(values) < 2 or np.ptp(values) == 0:
            raise DataError(f"correlation is undefined: the {len(values)} {name} scores are constant")
