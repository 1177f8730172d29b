"""Charts: ticks stand at round values, and values at their places between them."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.section import Chart, Row, round_ticks
from metasearch.evaluation.statistics.jackknife import Interval

SOME = st.lists(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6), min_size=1, max_size=9)


@given(SOME, st.integers(2, 12))
def test_ticks_hold_all_values_at_round_places_evenly_spaced(values, count):
    ticks = round_ticks(values, count)
    step = ticks[1] - ticks[0]
    slack = 1e-6 * step
    assert ticks[0] <= min(values) + slack
    assert ticks[-1] >= max(values) - slack
    assert round(step / 10.0 ** math.floor(math.log10(step) + 1e-6)) in (1, 2, 5)
    for left, right in pairwise(ticks):
        assert right - left == pytest.approx(step, rel=1e-4)
    assert 2 <= len(ticks) <= 2 * count + 3
    labels = [Chart("k", "t", ()).label(tick) for tick in ticks]
    assert len(set(labels)) == len(labels)
    assert [float(label.replace("−", "-")) for label in labels] == pytest.approx(
        [100 * tick for tick in ticks], abs=step
    )


def test_a_value_stands_between_the_ticks_in_proportion_and_the_reference_is_on_the_axis():
    chart = Chart("k", "t", (Row("a", 0.02, (Interval(0.01, 0.03), None)),), reference="zero-shot")
    assert (chart.ticks[0], chart.ticks[-1]) == (0, pytest.approx(0.03))
    first, value, last = (float(chart.place(each).rstrip("%")) for each in (0, 0.02, 0.03))
    assert (value - first) / (last - first) == pytest.approx(0.02 / 0.03, abs=1e-3)
    assert 0 < first < last < 100
