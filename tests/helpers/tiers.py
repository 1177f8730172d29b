"""Which cases of a test run in which tier."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def others_slow(cases: Iterable[Any], quick: Sequence[Any] = ()) -> list[Any]:
    """Return the cases of a test, all but the quick ones marked `slow`; by default the first one alone is quick."""
    cases = list(cases)
    return [pytest.param(case, marks=() if case in (quick or cases[:1]) else pytest.mark.slow) for case in cases]
