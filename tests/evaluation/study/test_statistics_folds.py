"""What training again would change: t intervals over folds, heterogeneity and components, by arithmetic and scipy."""

import numpy as np
import pytest
from scipy import stats

from metasearch.evaluation.statistics.folds import (
    Components,
    FoldDifference,
    components,
    heterogeneity,
    seeds_needed,
    training_interval,
)


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


def test_p_is_1_less_the_level_at_which_the_interval_ends_at_0():
    fold = folds((1.0, 2.0, 6.0), questions=0.5, articles=11)
    p = training_interval(fold, level=0.95).p
    assert training_interval(fold, level=1 - p).low == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("crossed", [False, True])
def test_no_difference_at_all_has_p_1(crossed):
    found = training_interval(folds(*[(0.0, 0.0, 0.0)] * (3 if crossed else 1), questions=0.0), 0.95, crossed)
    assert (found.low, found.high, found.p) == (0, 0, 1)


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


def test_components_are_those_of_the_method_of_moments():
    found = components(folds((1.0, 3.0), (4.0, 6.0), (8.0, 10.0), questions=0.5))
    of_seeds = (2 + 2 + 2) / 3  # (3 - 1)² / 2 with one degree of freedom on each fold
    between = np.var([2, 5, 9], ddof=1)
    assert found.seeds == pytest.approx(of_seeds)
    assert found.training == pytest.approx(between - of_seeds / 2 - 0.5 + of_seeds)
    assert found.questions == 0.5


def test_with_one_seed_folds_and_seeds_are_one_component_and_none_is_below_0():
    found = components(folds((1.0,), (4.0,), questions=0.5))
    assert found == Components(training=pytest.approx((4 - 1) ** 2 / 2 - 0.5), seeds=None, questions=0.5)
    assert components(folds((1.0,), (1.1,), questions=0.5)).training == 0.0
    assert components(folds((1.0,))) is None


def test_heterogeneity_is_cochrans_q_and_its_share():
    """Cochran (1954); Higgins & Thompson (2002), eq. 10."""
    own = [FoldDifference((1.0,), 0.5, 10), FoldDifference((2.0,), 0.25, 10), FoldDifference((5.0,), 1.0, 10)]
    mean = (1 / 0.5 + 2 / 0.25 + 5 / 1.0) / (1 / 0.5 + 1 / 0.25 + 1 / 1.0)
    q = (1 - mean) ** 2 / 0.5 + (2 - mean) ** 2 / 0.25 + (5 - mean) ** 2 / 1.0
    found = heterogeneity(own)
    assert (found.low, found.high, found.df) == (1.0, 5.0, 2)
    assert found.q == pytest.approx(q)
    assert found.p == pytest.approx(stats.chi2.sf(q, 2))
    assert found.i2 == pytest.approx((q - 2) / q)
    assert heterogeneity(own[:1]) is None


def test_folds_that_differ_by_their_seeds_alone_are_not_heterogeneous():
    alike = heterogeneity(folds((0.0, 4.0), (1.0, 5.0), (-1.0, 3.0)))
    assert alike.i2 == 0.0
    apart = heterogeneity(folds((0.0, 0.1), (4.0, 4.1), (-4.0, -3.9)))
    assert apart.p < 0.001


def power(shift, df, level=0.95):
    """Return the power of a two-sided t-test from the noncentral t distribution."""
    critical = stats.t.ppf((1 + level) / 2, df)
    return stats.nct.sf(critical, df, shift) + stats.nct.cdf(-critical, df, shift)


def test_the_seeds_that_a_difference_needs_have_the_power_that_is_promised_and_one_less_has_not():
    found = Components(training=1.0 + 4.0, seeds=4.0, questions=0.2)
    needed = seeds_needed(found, folds=5, difference=2.5, level=0.95)
    shifts = [2.5 / ((1.0 + 0.2 + 4.0 / count) / 5) ** 0.5 for count in (needed.fewest - 1, needed.fewest)]
    assert power(shifts[0], 4) < 0.8 <= power(shifts[1], 4)
    assert needed.certain


def test_where_folds_vary_too_much_no_number_of_seeds_is_enough():
    found = seeds_needed(Components(training=2e-4, seeds=1e-4, questions=0.0), folds=5, difference=0.003, level=0.95)
    assert found.fewest is None
    assert power(found.smallest / ((1e-4 + 1e-4 / 100) / 5) ** 0.5, 4) == pytest.approx(0.8, abs=1e-3)


def test_one_seed_cannot_tell_so_that_the_seeds_needed_are_a_lower_bound():
    seen = Components(training=3.0, seeds=None, questions=0.1)
    found = seeds_needed(seen, folds=5, difference=2.0, level=0.95)
    assert not found.certain
    assert found.fewest == seeds_needed(Components(3.0, 3.0, 0.1), folds=5, difference=2.0, level=0.95).fewest


def test_folds_that_share_their_models_are_compared_without_what_a_seed_does_to_all():
    """The seeds move both folds alike, by 4: what is left of a fold's own variance is that of its questions."""
    shared = folds((0.0, 4.0), (1.0, 5.0), questions=0.25)
    found = heterogeneity(shared, crossed=True)
    assert found.q == pytest.approx((0.5**2 + 0.5**2) / 0.25)  # means 2 and 3 around 2.5
    assert found.q > heterogeneity(shared).q
    apart = heterogeneity(folds((0.0, 4.0), (2.0, 4.0), questions=0.25), crossed=True)
    # ±0.5 are left of the four values beside fold and seed: a variance of 4 · 0.25 / (1 · 1), half of it in a mean.
    assert apart.q == pytest.approx((0.5**2 + 0.5**2) / (0.25 + 1.0 / 2))  # means 2 and 3 around 2.5
