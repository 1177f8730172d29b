"""Ticks stand at round values, hold all values, and are few."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.svg import axis

SOME = st.lists(
    st.floats(-1e12, 1e12, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-12), min_size=1, max_size=9
)


def test_ticks_by_hand():
    assert axis([0, 10], 0, 100).ticks == (0, 2, 4, 6, 8, 10)
    assert axis([0.57, 0.61], 0, 100, count=4).ticks == (0.57, 0.58, 0.59, 0.6, 0.61)
    assert axis([-11.5, 1.1], 0, 100, count=6).ticks == (-12, -10, -8, -6, -4, -2, 0, 2)


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


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_an_axis_of_nothing_is_an_error(values):
    with pytest.raises(ValueError, match="finite"):
        axis(values, 0, 1)
