"""A measured metric as a row, and the target that it is held to."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common.rows import Row

AT_LEAST, AT_MOST = ">=", "<="
_HOLDS = {AT_LEAST: operator.ge, AT_MOST: operator.le}
TARGETS: dict[tuple[str, str, str], tuple[str, float]] = {
    ("maml", "times learn2learn", "A1"): (AT_LEAST, 5),
    ("maml", "times learn2learn", "B"): (AT_LEAST, 2.5),
    ("maml", "times authors", "A1"): (AT_LEAST, 7),
    ("maml", "times authors", "B"): (AT_LEAST, 3),
    ("maml", "fraction of the GEMM limit", "A1"): (AT_LEAST, 0.45),
    ("maml", "fraction of the GEMM limit", "B"): (AT_LEAST, 0.65),
    ("maml-align", "times plain", "A1"): (AT_LEAST, 5),
    ("maml-align", "times plain", "B"): (AT_LEAST, 2.5),
    ("maml-align", "memory over plain", "A1"): (AT_MOST, 0.25),
    ("maml-align", "memory over plain", "B"): (AT_MOST, 0.4),
    ("second-order", "times learn2learn", "A1"): (AT_LEAST, 2.2),
    ("second-order", "times learn2learn", "B"): (AT_LEAST, 2.4),
    ("distillation", "times st-live", "A1"): (AT_LEAST, 5),
}


def row(case: str, shape: str, metric: str, values: Sequence[float], **facts: Any) -> Row:
    """Return the median of some rounds, between the lowest and the highest, and whether it reaches its target.

    A metric without a target has None for `target` and `holds`. Ratios of memory are to be at most their target, all
    others at least.
    """
    value = float(np.median(values))
    sense, target = TARGETS.get((case, metric, shape), (None, None))
    return {
        "case": case,
        "shape": shape,
        "metric": metric,
        "value": _rounded(value),
        "target": target,
        "holds": None if sense is None or target is None else bool(_HOLDS[sense](value, target)),
        "low": _rounded(min(values)),
        "high": _rounded(max(values)),
        **facts,
    }


def _rounded(value: float) -> float:
    """Return four digits of a value."""
    return float(f"{value:.4g}")
