"""One test of several differences, corrected for their number, and the interval of a mean of bounded values."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.search.tune.max_t import Gains, any_above_zero, bounded_test, chance_unseen, outweighed

VALUES = st.integers(-20, 20).map(lambda value: value / 20)


@st.composite
def clustered(draw, rows=3):
    """Return differences of up to `rows` lines, and a cluster for each unit."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    clusters = [str(i) for i, size in enumerate(sizes) for _ in range(size)]
    line = st.lists(VALUES, min_size=len(clusters), max_size=len(clusters))
    return np.array(draw(st.lists(line, min_size=1, max_size=rows))), clusters


def t_of(differences, clusters):
    """Return N · mean / √(G / (G - 1) Σ_g (s_g - n_g mean)²); 0 or infinite where no cluster differs."""
    count, mean, names = len(clusters), np.mean(differences), sorted(set(clusters))
    own = [[d for d, name in zip(differences, clusters, strict=True) if name == each] for each in names]
    error = np.sqrt(len(names) / (len(names) - 1) * sum((sum(part) - len(part) * mean) ** 2 for part in own)) / count
    if error < 1e-9:
        return float(np.sign(round(mean, 12))) * np.inf if abs(mean) > 1e-12 else 0.0
    return mean / error


@given(clustered())
def test_p_is_the_share_of_patterns_of_signs_with_as_large_a_t(drawn):
    differences, clusters = drawn
    names = sorted(set(clusters))
    found = []
    for signs in product([1, -1], repeat=len(names)):
        turned = differences * [dict(zip(names, signs, strict=True))[each] for each in clusters]
        found.append(max(t_of(row.tolist(), clusters) for row in turned))
    observed = found[0]
    expected = np.mean([t >= observed or t == pytest.approx(observed, rel=1e-6, abs=1e-9) for t in found])
    assert any_above_zero(differences, clusters) == pytest.approx(expected)


@pytest.mark.parametrize("count", [5, 12, 40])
def test_equal_differences_and_those_of_rounding_have_the_p_of_their_signs_alone(count):
    names = [str(i) for i in range(count)]
    patterns = 2 ** min(count, 12)
    assert any_above_zero(np.full((1, count), 0.1), names) == 1 / patterns
    assert any_above_zero(np.full((1, count), 1e-16), names) == 1.0
    assert any_above_zero(np.zeros((0, count)), names) == 1.0
    assert any_above_zero(np.full((1, count), 0.1), ["one"] * count) == 1.0


def test_a_gain_has_to_survive_losses_that_no_cluster_shows():
    """A loss of 0.2 in a share q makes a gain g to 0 if (1 - q) g = 0.2 q; ten clusters show none with (1 - q)^10."""
    names = [str(i) for i in range(10)]
    tests = Gains.of(np.array([np.full(10, 0.05), np.full(10, 0.3), np.zeros(10), np.full(10, -0.1)]), names)
    assert tests.unseen == pytest.approx([(0.2 / 0.25) ** 10, (0.2 / 0.5) ** 10, 1, 1])
    assert tests.adjusted([0]) == pytest.approx([(0.2 / 0.25) ** 10])
    assert tests.adjusted([1]) == pytest.approx([1 / 2**10])
    assert tests.significant(0.05) == [1]
    assert Gains.of(np.full((1, 10), 0.3), ["one"] + ["nine"] * 9).unseen == pytest.approx([(0.2 / 0.5) ** 2])
    assert (Gains.of(np.ones((1, 3)), ["one"] * 3).p(), Gains.of(np.zeros((0, 3)), names[:3]).p()) == (1, 1)


@given(st.integers(2, 50), st.floats(0.01, 0.5))
def test_a_gain_outweighs_the_loss_that_all_clusters_miss_with_a_chance_of_5_percent(clusters, gain):
    """A share q is missed by all with (1 - q)^G; the gain of the others, (1 - q) gain, equals a loss q L."""
    share, loss = outweighed(gain, clusters, 0.05)
    assert (1 - share) ** clusters == pytest.approx(0.05)
    assert share * loss == pytest.approx((1 - share) * gain)
    assert chance_unseen(loss, np.array([gain]), clusters) == pytest.approx(0.05)


@pytest.mark.parametrize("clusters", [8, 12, 40])
@pytest.mark.parametrize("lines", [1, 6])
def test_many_small_gains_with_a_few_large_losses_are_no_gain(lines, clusters):
    """Differences 0.1 (1 - Exp(1)) have the mean 0 and the skewness -2; t with random signs finds 12 to 38 %."""
    random, names, studies = np.random.default_rng(0), [str(i) for i in range(clusters)], 200
    drawn = [0.1 * (1 - random.exponential(size=(lines, clusters))) for _ in range(studies)]
    found = np.mean([Gains.of(each, names).p() < 0.05 for each in drawn])
    # 200 at 5 %: the deviation is √(0.05 · 0.95 / 200) = 1.5 %.
    assert found <= 0.05 + 2 * 0.015


def test_step_down_finds_gains_in_the_order_of_their_size():
    """Corrected for two, the weak gain has a p above 5 %; once the strong one has left, it is tested alone."""
    turns = np.resize([1.0, -1.0], 20)
    strong, weak = 0.3 + 0.001 * turns, 0.1 + 0.24 * turns + 0.05 * np.roll(turns, 1) * (np.arange(20) % 3)
    names = [str(i) for i in range(20)]
    alone = Gains.of(weak[None], names).p()
    found = Gains.of(np.array([weak, strong, -strong]), names)
    assert found.significant(0.05) == ([0, 1] if alone < 0.05 else [1])
    assert found.significant(alone - 1e-9) == [1]


@pytest.mark.parametrize(("sizes", "chance"), [((1,) * 11 + (11,), 0.8), ((1,) * 11 + (30,), 0.8), ((1,) * 20, 0.9)])
def test_an_interval_contains_the_mean_in_95_percent_though_one_cluster_is_large(sizes, chance):
    """All units of a cluster are right with a chance: 300 intervals miss it in 5 % + 2 deviations at most."""
    random, names, inside = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes), 0
    for _ in range(300):
        values = (random.random(len(sizes)) < chance).astype(float)[names]
        test = bounded_test(values, 0 * values, names.astype(str).tolist(), 0, 1)
        inside += test.low <= chance <= test.high
    assert inside / 300 >= 0.95 - 2 * (0.05 * 0.95 / 300) ** 0.5


@pytest.mark.parametrize("count", [6, 12, 50])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1)])
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_near_an_end_the_interval_is_the_exact_one_of_a_share(count, low, high, wrong):
    """Each cluster is at one end or the other: a share k of n, with P(X ≥ k) = P(X ≤ k) = 0.025 at the ends."""
    values = np.full(count, float(high))
    values[:wrong] = low
    test = bounded_test(values, np.zeros(count), [str(i) for i in range(count)], low, high)
    first, last = ((end - low) / (high - low) for end in (test.low, test.high))
    right = count - wrong

    def chance(share, which):
        return sum(comb(count, k) * share**k * (1 - share) ** (count - k) for k in which)

    assert chance(first, range(right, count + 1)) == pytest.approx(0.025)
    assert last == 1 if wrong == 0 else chance(last, range(right + 1)) == pytest.approx(0.025)
    if wrong == 0:
        assert first == pytest.approx(0.025 ** (1 / count))


@given(clustered(rows=1))
def test_an_interval_is_within_the_ends_contains_the_mean_and_is_mirrored(drawn):
    (differences,), clusters = drawn
    zeros = np.zeros(len(clusters))
    test, turned = (bounded_test(sign * differences, zeros, clusters, -1, 1) for sign in (1, -1))
    assert -1 <= test.low <= test.mean + 1e-12
    assert test.mean - 1e-12 <= test.high <= 1
    assert (turned.low, turned.high) == pytest.approx((-test.high, -test.low), abs=1e-9)
