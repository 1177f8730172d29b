"""What Pearson's and Spearman's correlation both need to be defined."""

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import DataError, NonFiniteError


def require_defined(predicted: NDArray[np.floating], gold: NDArray[np.floating]) -> None:
    """Check predicted and gold scores, `(N,)` each.

    Raises:
        DataError: a side is constant or has fewer than two values, so that no correlation is defined.
        NonFiniteError: a value is NaN or infinite.
    """
    for name, values in (("predicted", predicted), ("gold", gold)):
        if not np.isfinite(values).all():
            raise NonFiniteError(f"correlation is undefined: a {name} score is not finite")
        if len(values) < 2 or np.ptp(values) == 0:
            raise DataError(f"correlation is undefined: the {len(values)} {name} scores are constant")
