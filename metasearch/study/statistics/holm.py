"""Holm's correction: several comparisons, one probability of any false positive (Holm 1979)."""

from collections.abc import Sequence

from metasearch.errors import DataError


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the adjusted p-values: to reject where they are below α keeps the chance of any false rejection below α.

    The i-th smallest of m becomes `max_{j ≤ i} min(1, (m - j + 1) p_(j))`, however the tests depend on each other. A
    test that was not possible counts as none and stays None.

    Raises:
        DataError: a value is no probability.
    """
    wrong = [p for p in p_values if p is not None and not 0 <= p <= 1]
    if wrong:
        raise DataError(f"p-value {wrong[0]} is not between 0 and 1")
    adjusted: list[float | None] = [None] * len(p_values)
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    reached = 0.0
    for place, (p, i) in enumerate(order):
        reached = max(reached, min(1.0, (len(order) - place) * p))
        adjusted[i] = reached
    return adjusted
