"""The bootstrap against scipy, against resamples that are written out, and on data whose answer is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metasearch.config.seeding import stream
from metasearch.errors import ConfigError
from metasearch.evaluation.statistics import bootstrap
from metasearch.evaluation.statistics.bootstrap import Interval, check, draws, interval


def counted(units, resamples, seed=0):
    """Return all counts at once, `(B, U)`, of units each in a cluster of its own."""
    return np.concatenate(list(draws(np.arange(units), resamples, stream(seed, "test"))))


def written_out(counts, values):
    """Return the rows of one resample, each as often as it was drawn."""
    return np.repeat(values, counts.astype(int), axis=0)


def test_each_resample_draws_as_many_units_as_there_are():
    counts = counted(units=7, resamples=500)
    assert counts.shape == (500, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert (counts >= 0).all()


def test_a_cluster_is_drawn_with_all_its_units():
    clusters = np.array([0, 1, 0, 2, 1, 1])
    counts = np.concatenate(list(draws(clusters, 300, stream(0, "test"))))
    by_cluster = counts[:, [0, 1, 3]]
    assert (by_cluster.sum(axis=1) == 3).all()
    assert (counts == by_cluster[:, clusters]).all()


def test_blocks_bound_the_memory_and_lose_no_resample():
    blocks = list(draws(np.arange(10_000), 130, stream(0, "test")))
    assert [block.shape for block in blocks] == [(64, 10_000), (64, 10_000), (2, 10_000)]


def test_a_mean_is_that_of_the_rows_written_out():
    # Column 0 has two rows of unit 0 and one each of units 1 and 2; column 1 has none of unit 2.
    rows = [(np.array([0, 0, 1, 2]), np.array([0.1, 0.5, 0.9, 0.4])), (np.array([0, 1]), np.array([0.3, 0.8]))]
    sums = np.stack([np.bincount(units, values, 3) for units, values in rows], axis=1)
    sizes = np.stack([np.bincount(units, minlength=3) for units, _ in rows], axis=1).astype(float)
    counts = counted(3, 300)
    found = bootstrap.means(counts, sums, sizes)
    for resample, means in zip(counts, found, strict=True):
        for (units, values), mean in zip(rows, means, strict=True):
            expected = written_out(resample[units], values)
            assert np.isnan(mean) if not len(expected) else mean == pytest.approx(expected.mean())
    assert np.isnan(found[(counts[:, :2] == 0).all(axis=1), 1]).all()


small = st.integers(3, 12).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(-3, 3), min_size=n, max_size=n) for _ in range(2)))
)


@given(small, st.integers(0, 2**31), st.sampled_from(["pearson", "spearman"]))
def test_a_correlation_is_that_of_the_rows_written_out_ties_included(sides, seed, name):
    x, y = (np.array(side, dtype=float) for side in sides)
    counts = counted(len(x), 20, seed)
    oracle = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[name]
    for resample, found in zip(counts, getattr(bootstrap, name)(counts, x, y), strict=True):
        own_x, own_y = written_out(resample, x), written_out(resample, y)
        if np.ptp(own_x) == 0 or np.ptp(own_y) == 0:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(oracle(own_x, own_y).statistic, abs=1e-9)


@given(small, st.integers(0, 2**31))
def test_midranks_are_those_of_the_rows_written_out(sides, seed):
    values = np.array(sides[0], dtype=float)
    for resample in counted(len(values), 10, seed):
        ranks = bootstrap.midranks(resample[None], values)[0][0]
        assert written_out(resample, ranks) == pytest.approx(stats.rankdata(written_out(resample, values)))


def test_a_correlation_of_values_far_from_zero_keeps_its_digits():
    random = stream(0, "far")
    x = random.standard_normal(50)
    y = x + random.standard_normal(50)
    counts = counted(50, 100)
    near, far = bootstrap.pearson(counts, x, y), bootstrap.pearson(counts, x + 1e6, y)
    assert far == pytest.approx(near, abs=1e-7)


def test_resamples_on_which_a_statistic_is_undefined_are_left_out_and_counted():
    replicates = np.r_[np.arange(101.0), [np.nan] * 5]
    assert interval(replicates, level=0.5) == Interval(low=25.0, high=75.0, undefined=5)


def test_a_statistic_that_is_undefined_too_often_has_no_interval_and_excludes_nothing():
    found = interval(np.r_[np.arange(94.0), [np.nan] * 6])
    assert found == Interval(None, None, undefined=6)
    assert not found.excludes(1000.0)


def test_the_interval_is_that_of_scipy():
    random = stream(0, "scipy")
    one = random.beta(2, 3, 60)
    other = np.clip(one + 0.1 * random.standard_normal(60), 0, 1)
    expected = stats.bootstrap(
        (one, other),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        paired=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    ones = np.ones((60, 1))
    found = interval(bootstrap.means(counted(60, 10_000), (one - other)[:, None], ones)[:, 0])
    # A 2.5% point of 10,000 resamples has a Monte-Carlo error of √(.025 · .975 / 10,000) / .058 = 0.027 deviations.
    sd = (one - other).std() / 60**0.5
    assert found.low == pytest.approx(expected.low, abs=5 * 2**0.5 * 0.027 * sd)
    assert found.high == pytest.approx(expected.high, abs=5 * 2**0.5 * 0.027 * sd)


FOLDS, QUESTIONS, LANGUAGES = 2, 40, 3


def studies(number, difference, shared=0.9):
    """Yield differences of two learners on questions of each fold in all languages, `(F, Q, L)`.

    Most of the variance is the question's, and the same in all of its languages, as it is of translations.
    """
    for i in range(number):
        random = stream(i, "study")
        question = random.standard_normal((FOLDS, QUESTIONS, 1))
        own = random.standard_normal((FOLDS, QUESTIONS, LANGUAGES))
        yield difference + shared**0.5 * question + (1 - shared) ** 0.5 * own


def intervals(number, difference):
    """Return the intervals of the mean difference, with a question resampled together with its translations."""
    weights = [counted(QUESTIONS, 500, seed) for seed in range(FOLDS)]
    for values in studies(number, difference):
        means = [w @ column / w.shape[1] for w, column in zip(weights, values.mean(axis=2), strict=True)]
        yield interval(np.mean(means, axis=0))


def test_the_interval_covers_the_known_difference_as_often_as_it_says():
    covered = np.mean([not found.excludes(0.3) for found in intervals(400, difference=0.3)])
    assert 0.92 <= covered <= 0.975


@pytest.mark.parametrize(("level", "resamples"), [(0.9998, 10_000), (0.9999, 20_000), (0.9995, 4_000), (0.98, 100)])
def test_a_level_needs_one_resample_beyond_each_end(level, resamples):
    """(1 - level) / 2 of the resamples lie beyond an end; here exactly one does."""
    check(level, resamples)
    with pytest.raises(ConfigError, match=r"is too extreme|too few"):
        check(level, resamples - 1)
