"""How far a difference would move if training were repeated: t intervals, by arithmetic and scipy."""

import numpy as np
import pytest
from scipy import stats

from metasearch.evaluation.statistics.folds import FoldDifference, training_interval


def folds(*seeds, questions=0.5, articles=10):
    """Return a fold for each tuple of differences with its seeds."""
    return [FoldDifference(own, questions, articles) for own in seeds]


def test_the_interval_over_folds_is_students_over_their_means():
    found = training_interval(folds((1.0, 3.0), (4.0, 4.0), (5.0, 7.0)), level=0.9)
    means = [(1 + 3) / 2, (4 + 4) / 2, (5 + 7) / 2]
    se = np.std(means, ddof=1) / 3**0.5
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.9, 2, np.mean(means), se))
    assert found.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert (found.se, found.df, found.over) == (pytest.approx(se), 2, "folds")


def test_one_fold_adds_the_variances_of_its_seeds_and_questions_and_weighs_their_critical_values():
    """Cochran & Cox (1950)."""
    found = training_interval(folds((1.0, 2.0, 6.0), questions=0.5, articles=11), level=0.95)
    of_seeds, of_questions = np.var([1, 2, 6], ddof=1) / 3, 0.5
    df = (of_seeds + of_questions) ** 2 / (of_seeds**2 / (3 - 1) + of_questions**2 / (11 - 1))
    se = (of_seeds + of_questions) ** 0.5
    assert (found.se, found.df, found.over) == (pytest.approx(se), pytest.approx(df), "seeds and questions")
    critical = (of_seeds * stats.t.ppf(0.975, 3 - 1) + of_questions * stats.t.ppf(0.975, 11 - 1)) / se**2
    assert (found.low, found.high) == pytest.approx((3.0 - critical * se, 3.0 + critical * se))


def test_folds_that_share_their_models_add_what_folds_and_what_seeds_do():
    found = training_interval(folds((1.0, 3.0), (2.0, 5.0), (3.0, 4.0)), level=0.95, crossed=True)
    of_folds = np.var([(1 + 3) / 2, (2 + 5) / 2, (3 + 4) / 2], ddof=1) / 3
    of_seeds = np.var([(1 + 2 + 3) / 3, (3 + 5 + 4) / 3], ddof=1) / 2
    assert found.se == pytest.approx((of_folds + of_seeds) ** 0.5)
    assert found.df == pytest.approx((of_folds + of_seeds) ** 2 / (of_folds**2 / 2 + of_seeds**2 / 1))
    assert found.over == "folds and seeds"


@pytest.mark.parametrize(
    ("seeds", "crossed"),
    [([(1.0,)], False), ([(1.0,), (2.0,)], True), ([(1.0, 2.0)], True), ([(1.0, 2.0), (3.0,)], True)],
)
def test_what_was_not_trained_twice_has_no_interval(seeds, crossed):
    assert training_interval(folds(*seeds), 0.95, crossed) is None
