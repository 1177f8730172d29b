"""Rows of `results/mini_ablations.jsonl`."""

from collections.abc import Mapping
from typing import Any

from benchmarks.common.rows import Row
from benchmarks.paper.ablation_arms import TESTS, Test
from benchmarks.paper.ablation_scores import Figure

BiasFigures = Mapping[str, Mapping[str, Figure]]
"""Arm → test → what it got."""


def arm_rows(
    figures: BiasFigures, facts: Mapping[str, Mapping[str, Any]], tests: Mapping[str, Test] = TESTS
) -> list[Row]:
    """Return a row for each arm and test, and one for each of its facts: sizes, and sentences per second."""
    rows: list[Row] = []
    for arm, by_test in figures.items():
        for test, figure in by_test.items():
            interval = figure.interval()
            measure = {"task": tests[test].task, "measure": tests[test].measure, "data": figure.data}
            scored = {"value": figure.value, "low": interval.low, "high": interval.high}
            rows.append({"study": arm, "metric": test, **scored, **measure})
        for metric, value in facts.get(arm, {}).items():
            middle, low, high = value if isinstance(value, list) else (value, None, None)
            rows.append({"study": arm, "metric": metric, "value": middle, "low": low, "high": high})
    return rows


def difference_rows(figures: BiasFigures, against: Mapping[str, str]) -> list[Row]:
    """Return a row for each arm that is compared with another, `against` of it, and each test."""
    rows: list[Row] = []
    for arm, other in against.items():
        if arm in figures and other in figures:
            for test, figure in figures[arm].items():
                change = figure.above(figures[other][test])
                interval = change.interval()
                found = {"value": change.value, "low": interval.low, "high": interval.high}
                rows.append({"study": f"{arm} - {other}", "metric": test, **found, "arm": arm, "against": other})
    return rows
