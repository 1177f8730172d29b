"""The jackknife over groups against Student's interval, matrices that are written out, and data with a known answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metasearch.config.seeding import stream
from metasearch.errors import ConfigError
from metasearch.evaluation.statistics.jackknife import Interval, Stratum, check, spread
from metasearch.evaluation.statistics.paired import clustered_test


def stratum(groups):
    """Return the mean of the values of all groups as a stratum, from one list for each group."""
    values = np.concatenate(groups)
    without = [np.concatenate([*groups[:i], *groups[i + 1 :]]).mean() for i in range(len(groups))]
    shares = np.array([len(own) for own in groups]) / len(values)
    return Stratum(np.array([values.mean()]), np.array(without)[:, None], shares[:, None], len(values))


scores = st.floats(-1, 1).map(lambda x: round(x, 3))
grouped = st.lists(st.lists(scores, min_size=1, max_size=5), min_size=2, max_size=6)


@given(st.lists(scores, min_size=2, max_size=12).filter(lambda x: np.std(x) > 1e-6), st.integers(1, 3))
def test_groups_of_equal_size_have_students_interval_of_their_means(means, size):
    one = stratum([[mean] * size for mean in means])
    (found,) = spread([one]).intervals(one.values, 0.9)
    expected = stats.t.interval(0.9, len(means) - 1, np.mean(means), stats.sem(means))
    assert (found.low, found.high) == pytest.approx(expected)


@given(st.sampled_from([0.1, -0.3, 1.0]), st.lists(st.integers(1, 4), min_size=2, max_size=6))
def test_groups_that_are_equal_show_no_variance_and_have_no_interval_unless_they_are_0(value, sizes):
    for each, expected in ((value, (None, None)), (0.0, (0.0, 0.0))):
        one = stratum([[each] * size for size in sizes])
        (found,) = spread([one]).intervals(one.values)
        assert (found.low, found.high) == expected
        assert not found.excludes(0.0)


@given(grouped)
def test_variance_and_degrees_of_freedom_are_those_of_the_matrices_written_out(groups):
    """CR3 as a quadratic form y'By of N independent values: the trace of B, and twice that of B² (Bell & McCaffrey)."""
    sizes = np.array([len(own) for own in groups])
    y, n, g = np.concatenate(groups), sizes.sum(), len(groups)
    member = np.repeat(np.eye(g), sizes, axis=1)
    # The residuals of a group, weighed by 1 / (1 - w), and summed.
    rows = (member / (1 - sizes / n)[:, None] / n) @ (np.eye(n) - np.full((n, n), 1 / n))
    form = (g - 1) / g * rows.T @ rows
    found = spread([stratum(groups)])
    assert found.variance[0] == pytest.approx(y @ form @ y, abs=1e-12)
    assert found.df[0] == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))
    assert 1 <= round(found.df[0], 9) <= g - 1


def test_one_group_with_most_of_the_questions_leaves_about_one_degree_of_freedom():
    # Shares .6 and 11 times .4 / 11; r = .6 / .4 = 1.5 and .0364 / .9636 = .0377.
    groups = [[0.0] * 66, *[[1.0] * 4] * 11]
    r = np.array([0.6 / 0.4, *[(4 / 110) / (106 / 110)] * 11])
    expected = r.sum() ** 2 / ((r**2).sum() ** 2 - (r**4).sum() + (r**2).sum())
    assert spread([stratum(groups)]).df == pytest.approx(expected)
    assert 1 < expected < 2


def test_a_mean_over_strata_adds_their_variances_and_a_stratum_that_lacks_a_figure_adds_nothing():
    one, other = stratum([[0.1], [0.4], [0.3]]), stratum([[0.5], [0.2]])
    lacking = Stratum(np.full(1, np.nan), np.full((2, 1), np.nan), np.full((2, 1), np.nan), 2)
    found = spread([one, other, lacking])
    expected = np.var([0.1, 0.4, 0.3], ddof=1) / 3 + np.var([0.5, 0.2], ddof=1) / 2
    assert found.variance == pytest.approx(expected / 2**2)


def test_one_group_has_no_interval_and_excludes_nothing():
    one = Stratum(np.array([0.5]), np.full((1, 1), np.nan), np.ones((1, 1)), 2)
    (found,) = spread([one]).intervals(one.values)
    assert found == Interval(None, None)
    assert not found.excludes(1000.0)


@given(grouped)
def test_the_clustered_test_has_the_same_interval(groups):
    names = [str(i) for i, own in enumerate(groups) for _ in own]
    values, one = np.concatenate(groups), stratum(groups)
    found = clustered_test(values, np.zeros(len(values)), names)
    (expected,) = spread([one]).intervals(one.values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("sizes", [[10] * 5, [10] * 10, [66, *[4] * 11], [1, 2, 4, 8, 16, 32]], ids=len)
def test_at_most_7_percent_of_intervals_miss_the_known_difference_from_5_groups_on(sizes):
    """With effects of groups and of questions; 1,000 studies have a deviation of √(.05 · .95 / 1000) = 0.7 %."""
    random = stream(0, "coverage", len(sizes))
    missed = 0
    for _ in range(1000):
        effects = 0.3**0.5 * random.standard_normal(len(sizes))
        own = stratum([e + 0.7**0.5 * random.standard_normal(n) for e, n in zip(effects, sizes, strict=True)])
        missed += spread([own]).intervals(own.values)[0].excludes(0.0)
    assert missed / 1000 <= 0.07


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ConfigError, match="expected a number between 0 and 1"):
        check(level)
