"""Which phase and meta-batch an outer step belongs to."""

import pytest

from metasearch.config.recipe import Budget
from metasearch.training.schedule import schedule
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


@pytest.mark.parametrize(("max_steps", "expected"), [(9, [7, 2]), (90, [70, 20]), (1, [1, 0])])
def test_fewer_steps_than_an_epoch_shrink_both_phases_in_proportion(max_steps, expected):
    plan = planned(max_steps, train=7000, valid=2000)
    names = [name for name, _ in walk(plan)]
    assert [names.count("meta-train"), names.count("meta-valid")] == expected


def test_a_phase_without_episodes_is_left_out():
    assert {name for name, _ in walk(planned(valid=0))} == {"meta-train"}
    assert planned(train=0, valid=0).total == 0


def test_early_stopping_counts_outer_steps_since_the_best_score():
    stopping = EarlyStopping(patience=50)
    assert [stopping.update(step, score) for step, score in [(25, 0.5), (50, 0.6), (75, 0.6)]] == [True, True, False]
    assert (stopping.best_step, stopping.best_score) == (50, 0.6)
    assert not stopping.exhausted
    stopping.update(99, 0.1)
    assert not stopping.exhausted
    stopping.update(100, 0.6)
    assert stopping.exhausted
