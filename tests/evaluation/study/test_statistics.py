"""The paired t-test against scipy, Holm's correction by hand, and means with what they are taken over."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from metasearch.evaluation.statistics.paired import PairedTest, Summary, clustered_test, holm, student

pairs = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=40)
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(pairs, st.floats(0.5, 0.999))
def test_the_paired_test_is_that_of_scipy(measured, level):
    one, other = np.array(measured).T
    assume((one - other).std() > 1e-6)
    found, expected = student(one - other, 1.0, level), stats.ttest_rel(one, other)
    assert found.t == pytest.approx(expected.statistic, rel=1e-6)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(level)), rel=1e-6, abs=1e-9)


def test_no_difference_anywhere_is_no_evidence_and_one_pair_has_a_mean_and_no_test():
    assert student(np.zeros(2), 0.7) == PairedTest(2, 0.0, 0.0, None, 1.0, 0.0, 0.0)
    assert student(np.array([0.25]), 0.75) == PairedTest(1, 0.25, None, None, None, None, None)


def test_the_same_difference_everywhere_has_no_t_and_a_tiny_p_value_is_above_0():
    found = student(np.subtract([0.3, 0.7, 0.9], [0.2, 0.6, 0.8]), 0.9)  # 0.1 each, but for rounding
    assert (found.sd, found.t, found.p) == (0.0, None, None)
    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert 0 < student(np.array([1 + i % 2 / 1000 for i in range(2000)]), 1.0).p < 1e-300


def test_holm_by_hand():
    # In order: 4 · .005 = .02, 3 · .01 = .03, 2 · .03 = .06, and 1 · .04, which may not fall below .06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02, None, 0.5]) == [2 * 0.02, None, 0.5]
    assert holm([None]) == [None]
    assert holm([]) == []


@given(probabilities, st.floats(0.001, 0.5))
def test_holm_rejects_what_stepping_down_rejects(p_values, alpha):
    rejected, order = set(), np.argsort(p_values, kind="stable")
    for place, i in enumerate(order):
        if (len(order) - place) * p_values[i] >= alpha:
            break
        rejected.add(i)
    assert {i for i, p in enumerate(holm(p_values)) if p < alpha} == rejected


def test_a_summary_has_the_sample_deviation_and_says_over_what():
    # Mean 4; deviations -2, 0, 2: √((4 + 0 + 4) / (3 - 1)).
    assert Summary.of([2.0, 4.0, 6.0], "folds") == Summary(4.0, (8 / 2) ** 0.5, 3, "folds")


@given(pairs)
def test_clusters_of_one_unit_give_the_paired_test(measured):
    one, other = np.array(measured).T
    assume((one - other).std() > 1e-6)
    found, expected = clustered_test(one, other, [*map(str, range(len(one)))]), student(one - other, 1.0)
    assert (found.n, found.t, found.p, found.low) == pytest.approx(
        (expected.n, expected.t, expected.p, expected.low), rel=1e-6, abs=1e-9
    )


def test_the_clustered_test_by_hand():
    found = clustered_test([3.0, 5.0, 4.0], [2.0, 3.0, 1.0], ["a", "a", "b"])
    # Differences 1, 2 and 3: mean 2; without a it is 3, and without b 1.5: SE² = 1 / 2 · (1 + 0.25), t = 2 / SE.
    t = 2 / (1.25 / 2) ** 0.5
    assert (found.n, found.mean, found.t) == pytest.approx((2, 2.0, t))
    # With 1 degree of freedom, P(|T| > t) = 1 - 2 / π · arctan t.
    assert found.p == pytest.approx(1 - 2 / np.pi * np.arctan(t))
