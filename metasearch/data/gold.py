"""Gold similarity: from 0 to 5 in files, from 0 to 1 in records."""

import math
from pathlib import Path

from metasearch.errors import DataError

SCORE_MAX = 5.0
"""Gold similarity goes from 0 to 5 in files; records hold it divided by this."""


def score_of(text: str, path: Path, line: int) -> float:
    """Return a score written as a number from 0 to 5, scaled to 0 to 1."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    # Written so that NaN is refused, too.
    if not 0.0 <= score <= SCORE_MAX:
        raise DataError(f"{path}:{line}: expected a score from 0 to {SCORE_MAX:g}, got '{text}'")
    return score / SCORE_MAX
