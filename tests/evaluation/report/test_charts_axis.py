"""Ticks stand at round values, hold all values, and are few."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.svg import axis

SOME = st.lists(
    st.floats(-1e12, 1e12, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-12), min_size=1, max_size=9
)


@given(SOME, st.integers(2, 12))
def test_an_axis_holds_all_values_with_round_ticks_evenly_spaced(values, count):
    made = axis(values, 0, 100, count)
    exponent = math.floor(math.log10(made.step) + 1e-6)
    slack = 1e-6 * made.step
    assert made.ticks[0] <= min(values) + slack
    assert made.ticks[-1] >= max(values) - slack
    assert round(made.step / 10.0**exponent) in (1, 2, 5)
    for left, right in zip(made.ticks, made.ticks[1:], strict=False):
        assert right - left == pytest.approx(made.step, rel=1e-4)
    assert 2 <= len(made.ticks) <= 2 * count + 3


@given(SOME)
def test_labels_tell_the_ticks_apart(values):
    made = axis(values, 0, 1)
    labels = [made.label(tick) for tick in made.ticks]
    assert len(set(labels)) == len(labels)
    assert [float(label.replace("−", "-")) for label in labels] == pytest.approx(list(made.ticks), abs=made.step / 100)
