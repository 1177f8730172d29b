"""Which cases of a test run in which tier."""

from collections.abc import Iterable
from typing import Any

import pytest


def others_slow(cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a test, all but the first marked `slow`."""
    return [pytest.param(case, marks=pytest.mark.slow if i else ()) for i, case in enumerate(cases)]
