"""Cells with a mean of each language in place of questions, and columns of tables over the folds of one setting."""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np

from benchmarks.common.rows import Row
from benchmarks.paper import cells
from metasearch.evaluation.statistics.paired import student
from metasearch.evaluation.study.read import digest, select_settings

MAIN = "multilingual"
_SHARED = ("task", "mode", "fold", "seed", "data", "measure", "pool", "versions", "facts")


def fold_row(row: Row, **named: object) -> Row:
    """Return a row of `benchmarks.paper.cells` with means of languages, and what the study calls it by."""
    means = {language: fmean(values) / cells.DIGITS for language, values in row["values"].items()}
    shared = {key: row[key] for key in _SHARED}
    return {**shared, **named, "languages": means, "settings": digest(select_settings(row["config"]))}


def by_fold(rows: Sequence[Row], pool: str = MAIN, codes: Sequence[str] = ()) -> dict[int, float]:
    """Return fold → 100 × the mean over some languages, or all, in a pool; seeds are averaged."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if row["pool"] == pool:
            values = [value for code, value in row["languages"].items() if not codes or code in codes]
            found.setdefault(row["fold"], []).append(100 * fmean(values))
    return {fold: fmean(values) for fold, values in found.items()}


def mean_of(rows: Sequence[Row], codes: Sequence[str]) -> str:
    """Return the mean over folds of some languages in the main pool."""
    return f"{fmean(by_fold(rows, MAIN, codes).values()):.2f}"


def spread(values: Sequence[float]) -> str:
    """Return a mean over folds with its standard deviation."""
    deviation = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{fmean(values):.2f}{deviation}" if values else ""


def gain(after: Sequence[Row], before: Sequence[Row]) -> str:
    """Return by how much one setting is above another in the main pool of the folds that both have, with its interval.

    The interval is Student's over folds, at 95 %; of fewer than two folds there is none, and nothing is said.
    """
    high, low = by_fold(after), by_fold(before)
    both = sorted(high.keys() & low.keys())
    if len(both) < 2:
        return ""
    test = student(np.array([high[fold] - low[fold] for fold in both]), largest=100.0)
    return f"{test.mean:+.2f} [{test.low:+.2f}, {test.high:+.2f}]"
