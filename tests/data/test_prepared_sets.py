"""Ranges and bits of rows are the sets that they stand for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from metasearch.data.prepared.ranges import Bits, Ranges

ROWS = 40
SETS = st.sets(st.integers(0, ROWS - 1))


def ranges(rows):
    """Return ranges of rows, with neighbours in ranges of their own where they are even."""
    return Ranges((row, row + 1) for row in sorted(rows))


def rows_of(found):
    return found.rows(np.arange(len(found))).tolist()


@given(SETS, SETS, st.integers(0, ROWS), st.integers(0, ROWS))
def test_ranges_are_sets_of_rows(some, others, start, end):
    found, out = ranges(some), np.array(sorted(others), np.int64)
    assert rows_of(found) == sorted(some)
    assert rows_of(found.without(out)) == sorted(some - others)
    assert found.has(np.arange(ROWS)).tolist() == [row in some for row in range(ROWS)]
    assert rows_of(ranges(some - others) + ranges(some & others)) == sorted(some)
    low, high = sorted((start, end))
    assert rows_of(found.within(low, high)) == [row for row in sorted(some) if low <= row < high]


@given(SETS, SETS, st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_bits_are_sets_of_rows(some, others, sizes):
    total = sum(sizes)
    inside, outside = ({row for row in rows if row < total} for rows in (some, others))
    bits = Bits(sizes, full=False)
    bits.add(np.array(sorted(inside), np.int64))
    bits.drop(np.array(sorted(outside), np.int64))
    found = np.concatenate([bits.of(part) for part in range(len(sizes))])
    assert found.tolist() == [row in inside - outside for row in range(total)]
    assert all(part.all() for part in (Bits(sizes, full=True).of(i) for i in range(len(sizes))))
