"""Mean and standard deviation, with what they are taken over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from metasearch.errors import DataError

Over = Literal["folds", "seeds", "folds and seeds", "languages"]


@dataclass(frozen=True)
class Summary:
    """Mean ± sample standard deviation (ddof 1), which is None with one value, of `count` values."""

    mean: float
    sd: float | None
    count: int
    over: Over


def summary(values: Sequence[float], over: Over) -> Summary:
    """Return mean and sample standard deviation, `√(Σ (x - mean)² / (n - 1))`.

    Raises:
        DataError: there are no values.
    """
    count = len(values)
    if not count:
        raise DataError(f"no values to take a mean of over {over}")
    return Summary(float(np.mean(values)), float(np.std(values, ddof=1)) if count > 1 else None, count, over)
