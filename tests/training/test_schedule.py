"""Which phase and meta-batch an outer step belongs to, and its rate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.config.recipe import Budget, Outer
from metasearch.training.schedule import rate, schedule
from metasearch.training.trainer import EarlyStopping


def planned(max_steps=None, epochs=2, train=70, valid=20, size=4):
    budget = Budget(meta_train=train, meta_valid=valid, meta_batch=size, epochs=epochs)
    sources = [("meta-train", train, None), ("meta-valid", valid, None)]
    return schedule(budget, sources, max_steps)


def walk(plan):
    return [(phase.name, position) for phase, position in map(plan.at, range(plan.total))]


def test_every_episode_is_visited_once_an_epoch_and_meta_valid_follows_meta_train():
    epoch = [("meta-train", i) for i in range(18)] + [("meta-valid", i) for i in range(5)]  # ceil(70/4), 20/4
    assert walk(planned()) == epoch + epoch
    assert {name for name, _ in walk(planned(valid=0))} == {"meta-train"}
    assert planned(train=0, valid=0).total == 0


@pytest.mark.parametrize(("max_steps", "expected"), [(9, [7, 2]), (90, [70, 20]), (1, [1, 0])])
def test_fewer_steps_than_an_epoch_shrink_both_phases_in_proportion(max_steps, expected):
    plan = planned(max_steps, train=7000, valid=2000)
    names = [name for name, _ in walk(plan)]
    assert [names.count("meta-train"), names.count("meta-valid")] == expected


def test_early_stopping_counts_outer_steps_since_the_best_score():
    stopping = EarlyStopping(patience=50)
    assert [stopping.update(step, score) for step, score in [(25, 0.5), (50, 0.6), (75, 0.6)]] == [True, True, False]
    assert (stopping.best_step, stopping.best_score) == (50, 0.6)
    assert not stopping.exhausted
    stopping.update(99, 0.1)
    assert not stopping.exhausted
    stopping.update(100, 0.6)
    assert stopping.exhausted


def rates(total, **settings):
    """Return the factor of each step."""
    outer = Outer(lr=1, **settings)
    return [rate(step, total, outer) for step in range(1, total + 1)]


def test_warm_up_rises_in_a_line_and_decay_is_a_line_to_0_one_step_after_the_last_or_half_a_cosine():
    assert rates(8, warmup=0.5) == [1 / 4, 2 / 4, 3 / 4, 4 / 4, 1, 1, 1, 1]
    assert rates(4, decay="linear") == [1, 1 - 1 / 4, 1 - 2 / 4, 1 - 3 / 4]
    assert rates(7, warmup=3 / 7, decay="linear") == [1 / 3, 2 / 3, 1, 1 - 1 / 5, 1 - 2 / 5, 1 - 3 / 5, 1 - 4 / 5]
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
