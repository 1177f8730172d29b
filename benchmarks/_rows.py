"""Rows of `results/throughput.jsonl`, and the targets that they are held to."""

import operator
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from metasearch.training.machine import used

Row = dict[str, Any]

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
    ("second-order-memory", "memory at most over least steps", "A1"): (AT_MOST, 1.05),
    ("second-order-memory", "memory at most over least steps", "B"): (AT_MOST, 1.05),
    ("distillation", "times st-live", "A1"): (AT_LEAST, 5),
}
"""By case, metric and shape; those of the evaluation stand in `_evaluation.py`."""


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


def where() -> Row:
    """Return the revision and the machine that figures come from."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    revision = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    facts = used(0, torch.device("cpu"))
    hardware = {key: facts[key] for key in ("processor", "cores", "system")}
    load = round(os.getloadavg()[0], 1)
    return {"revision": revision or "unknown", "machine": {**hardware, "torch": torch.__version__, "load": load}}


def _rounded(value: float) -> float:
    """Return four digits of a value."""
    return float(f"{value:.4g}")
