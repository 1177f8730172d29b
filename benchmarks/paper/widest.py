"""Bounds of the main interval, for rows that kept no folds.

Rows from before `metasearch compare` had an interval over training hold, of each difference, its value in each of L
languages and the standard deviation over fold × language means. Their sums of squares add up:
`SS_total = L Σ_f (d_f - d)² + F Σ_l (d_l - d)² + SS_rest`. The first two terms of the left are known, and SS_rest is at
least 0, so that the spread of the folds, and with it Student's interval over them, has an upper bound.
"""

from collections.abc import Mapping
from typing import Any

from scipy import special

from metasearch.evaluation.statistics.folds import TrainingInterval

LEVEL = 0.95


def widest(change: Mapping[str, Any], folds: int, level: float = LEVEL) -> TrainingInterval | None:
    """Return the widest that the main interval of a difference can be, with the largest p; None where it has none.

    Args:
        change: a difference as rows keep it: `difference`, `d_z`, `pairs`, and `languages`, each with its `difference`.
        folds: number of folds; every one has all languages.
        level: of the interval.
    """
    if folds < 2 or not change["d_z"]:
        return None
    value, pairs = change["difference"], change["pairs"]
    total = (pairs - 1) * (value / change["d_z"]) ** 2
    languages = folds * sum((own["difference"] - value) ** 2 for own in change["languages"].values())
    of_folds = max(0.0, total - languages) / (pairs / folds) / (folds - 1)
    se, df = (of_folds / folds) ** 0.5, folds - 1
    reach = float(special.stdtrit(df, (1 + level) / 2)) * se
    p = 2 * float(special.stdtr(df, -abs(value) / se)) if se else 0.0
    return TrainingInterval(value - reach, value + reach, p, se, df, "folds")
