"""The rate of each outer step, in numbers small enough to count."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.config.recipe import Outer
from metasearch.training.schedule import rate


def rates(total, **settings):
    """Return the factor of each step."""
    outer = Outer(lr=1, **settings)
    return [rate(step, total, outer) for step in range(1, total + 1)]


def test_warm_up_rises_in_a_line_to_1_and_the_first_step_is_not_in_vain():
    assert rates(8, warmup=0.5) == [1 / 4, 2 / 4, 3 / 4, 4 / 4, 1, 1, 1, 1]


def test_linear_decay_falls_by_the_same_step_to_0_one_step_after_the_last():
    assert rates(4, decay="linear") == [1, 1 - 1 / 4, 1 - 2 / 4, 1 - 3 / 4]
    assert rates(7, warmup=3 / 7, decay="linear") == [1 / 3, 2 / 3, 1, 1 - 1 / 5, 1 - 2 / 5, 1 - 3 / 5, 1 - 4 / 5]


def test_cosine_decay_is_half_a_cosine():
    found = rates(6, warmup=2 / 6, decay="cosine")
    expected = [1 / 2, 1, *((1 + math.cos(math.pi * i / 5)) / 2 for i in (1, 2, 3, 4))]
    assert found == pytest.approx(expected, rel=1e-15)


@given(
    total=st.integers(1, 400),
    warmup=st.floats(0, 1, exclude_max=True),
    decay=st.sampled_from(["none", "linear", "cosine"]),
)
def test_every_step_moves_and_the_rate_rises_and_then_falls(total, warmup, decay):
    found = rates(total, warmup=warmup, decay=decay)
    top = found.index(max(found))
    assert all(0 < factor <= 1 for factor in found)
    assert found[top] == 1
    assert found[: top + 1] == sorted(found[: top + 1])
    assert found[top:] == sorted(found[top:], reverse=True)
