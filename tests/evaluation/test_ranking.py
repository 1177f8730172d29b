"""Rankings of many queries without sorting, against a sort."""

import numpy as np
import pytest

from metasearch.evaluation.metrics import ranking

SIZES = (1, 20, 63, 64, 65, 159, 161, 500, 2000)


@pytest.fixture(params=["at once", "a row at a time"], autouse=True)
def _blocks(request, monkeypatch):
    if request.param != "at once":
        monkeypatch.setattr(ranking, "_CELLS", 1)


def sorted_rows(scores):
    """Return the candidates of each query, highest score first, equal ones in their order."""
    return np.argsort(-scores, axis=1, kind="stable")


def scores_of(size, levels, queries=6):
    """Return scores at so many levels; with few of them most are equal."""
    return np.random.default_rng(size).integers(0, levels, (queries, size)).astype(np.float32) - levels // 2


@pytest.mark.parametrize("levels", [1, 3, 50, 10**6])
@pytest.mark.parametrize("size", SIZES)
def test_the_highest_are_the_first_of_a_stable_sort(size, levels):
    scores = scores_of(size, levels)
    for k in (1, 7, 20):
        assert ranking.highest(scores, k).tolist() == sorted_rows(scores)[:, :k].tolist()


@pytest.mark.parametrize("levels", [1, 3, 50, 10**6])
@pytest.mark.parametrize("size", SIZES)
def test_what_ranks_above_an_item_is_what_stands_before_it_in_a_stable_sort(size, levels):
    scores = scores_of(size, levels)
    random = np.random.default_rng(levels)
    groups = random.integers(0, 3, size)
    counts = np.minimum([2, 2, 0, 1, 5, 2], size)  # as many items of each query
    columns = [random.choice(size, count, replace=False) for count in counts]
    found = ranking.above(scores, np.concatenate(columns), np.cumsum([0, *counts]), ranking.members(groups, 3))
    expected = []
    for order, items in zip(sorted_rows(scores), columns, strict=True):
        for item in items:
            before = groups[order[: order.tolist().index(item)]]
            expected.append([int((before == group).sum()) for group in range(3)])
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("rows", "columns", "cells", "expected"),
    [
        (0, 5, 10, []),
        (4, 5, 100, [(0, 4)]),
        (4, 5, 10, [(0, 2), (2, 4)]),
        (5, 5, 10, [(0, 1), (1, 3), (3, 5)]),  # 25 cells in three blocks, none of a row more than another's and one
        (3, 100, 10, [(0, 1), (1, 2), (2, 3)]),  # a row is never cut
    ],
)
def test_blocks_of_rows_are_equal_and_no_larger_than_asked(rows, columns, cells, expected):
    assert ranking.blocks(rows, columns, cells) == expected
