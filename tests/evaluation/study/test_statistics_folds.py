"""How far a difference would move if training were repeated: t intervals, by arithmetic and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metasearch.evaluation.statistics.folds import FoldDifference, training_interval
from metasearch.evaluation.statistics.paired import subtract


def folds(*seeds, questions=0.5, df=9):
    return [FoldDifference(own, questions, df) for own in seeds]


def test_the_interval_over_folds_is_students_over_their_means():
    found = training_interval(folds((1.0, 3.0), (4.0, 4.0), (5.0, 7.0)), level=0.9)
    means = [(1 + 3) / 2, (4 + 4) / 2, (5 + 7) / 2]
    se = np.std(means, ddof=1) / 3**0.5
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.9, 2, np.mean(means), se))
    assert found.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert (found.se, found.df, found.over) == (pytest.approx(se), 2, "folds")


def test_one_fold_adds_the_variances_of_its_seeds_and_questions_and_weighs_their_critical_values():
    """Cochran & Cox (1950)."""
    found = training_interval(folds((1.0, 2.0, 6.0), questions=0.5, df=10), level=0.95)
    of_seeds, of_questions = np.var([1, 2, 6], ddof=1) / 3, 0.5
    df = (of_seeds + of_questions) ** 2 / (of_seeds**2 / (3 - 1) + of_questions**2 / 10)
    se = (of_seeds + of_questions) ** 0.5
    assert (found.se, found.df, found.over) == (pytest.approx(se), pytest.approx(df), "seeds and questions")
    critical = (of_seeds * stats.t.ppf(0.975, 3 - 1) + of_questions * stats.t.ppf(0.975, 10)) / se**2
    assert (found.low, found.high) == pytest.approx((3.0 - critical * se, 3.0 + critical * se))


def test_a_model_that_all_folds_share_adds_the_variance_of_its_seeds():
    found = training_interval(folds((1.0, 3.0), (2.0, 5.0), (3.0, 4.0)), 0.95, shared=[(2.0, 4.0, 9.0)])
    of_folds = np.var([(1 + 3) / 2, (2 + 5) / 2, (3 + 4) / 2], ddof=1) / 3
    of_seeds = np.var([2, 4, 9], ddof=1) / 3
    assert found.se == pytest.approx((of_folds + of_seeds) ** 0.5)
    assert found.df == pytest.approx((of_folds + of_seeds) ** 2 / (of_folds**2 / 2 + of_seeds**2 / 2))
    assert found.over == "folds and seeds"


def test_seeds_that_cannot_be_paired_add_both_their_variances_on_one_fold():
    found = training_interval(folds((3.0,), questions=0.5), 0.95, shared=[(2.0, 4.0, 9.0), (1.0, 2.0)])
    assert found.se**2 == pytest.approx(np.var([2, 4, 9], ddof=1) / 3 + np.var([1, 2], ddof=1) / 2 + 0.5)
    assert found.over == "seeds and questions"


def test_models_that_are_trained_on_no_fold_differ_by_questions_alone():
    assert training_interval(folds((1.0,), (2.0,)), 0.95, trained=False).over == "questions"


@pytest.mark.parametrize(("own", "questions"), [((1.0,), 0.5), ((1.0, 2.0), float("nan"))])
def test_what_was_not_trained_twice_has_no_interval(own, questions):
    assert training_interval(folds(own, questions=questions), 0.95) is None


@given(
    st.floats(1e-6, 1.0),
    st.lists(st.integers(-8, 8), min_size=2, max_size=6),
    st.sampled_from(["folds", "folds and seeds", "seeds"]),
)
def test_differences_of_rounding_are_no_evidence_however_large_the_scores(score, ulps, over):
    """Each is at most 8 units in the last place of a score."""
    each = [n * np.spacing(score) for n in ulps]
    seeds = [(one,) for one in each] if over != "seeds" else [tuple(subtract(score + np.array(each), np.array(score)))]
    made = [FoldDifference(own, 0.0, 5, score) for own in seeds]
    shared = [(score, score)] if over == "folds and seeds" else ()
    found = training_interval(made, 0.95, shared)
    assert found.p == 1.0
    assert not found.excludes(0.0)


@given(
    st.sampled_from([0.25, -0.1, 0.3 - 0.2]),
    st.integers(2, 5),
    st.sampled_from([{}, {"shared": [(0.3, 0.3)]}, {"trained": False}]),
    st.booleans(),
)
def test_equal_differences_show_no_variance_and_have_no_interval(value, count, options, one_fold):
    made = [FoldDifference((value,) * count, 0.0, 5)] if one_fold else folds(*[(value,)] * count)
    found = training_interval(made, 0.95, **options)
    assert (found.low, found.high, found.p) == (None, None, None)
    assert not found.excludes(0.0)
