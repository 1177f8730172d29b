"""Ticks of an axis at round values."""

import math
from collections.abc import Sequence

from metasearch.evaluation.report.formats import minus

_SAME = 1e-9
"""Share of its values below which a range is rounding error."""


def tick_label(tick: float) -> str:
    """Return a tick × 100 as text."""
    return minus(f"{100 * tick:z.10g}")


def round_ticks(values: Sequence[float], count: int = 6) -> tuple[float, ...]:
    """Return two or more, about `count`, evenly spaced ticks around finite values: 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    if high - low <= _SAME * max(abs(low), abs(high)):
        half = abs(low) / 10 or 1.0
        low, high = low - half, high + half
    size = (high - low) / count
    power = 10.0 ** math.floor(math.log10(size))
    step = min((power * n for n in (1, 2, 5, 10)), key=lambda step: abs(math.log10(size / step)))
    # A value that is beyond a tick by rounding adds no empty space.
    first, last = math.floor(low / step + _SAME), math.ceil(high / step - _SAME)
    return tuple(i * step for i in range(first, last + 1))
