"""Mean and standard deviation, with what they are taken over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from metasearch.errors import DataError

Over = Literal["folds", "seeds", "folds and seeds", "languages"]


@dataclass(frozen=True)
class Summary:
    """Mean ± standard deviation.

    Attributes:
        mean: mean of the values.
        sd: sample standard deviation (ddof 1); None with one value.
        count: number of values.
        over: units of the values, such as `folds`.
    """

    mean: float
    sd: float | None
    count: int
    over: Over


def summary(values: Sequence[float], over: Over) -> Summary:
    """Return mean and sample standard deviation, `√(Σ (x - mean)² / (n - 1))`.

    Raises:
        DataError: there are no values.
    """
    if not len(values):
        raise DataError(f"no values to take a mean of over {over}")
    return Summary(
        mean=float(np.mean(values)),
        sd=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        count=len(values),
        over=over,
    )
