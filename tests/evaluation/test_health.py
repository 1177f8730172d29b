"""The shape of sentence vectors: mean cosine, spread and effective rank by arithmetic, slow references, bounds."""

import itertools
import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation.collapse import health

RIGHT, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
# Entries of a fair size, so that the reference, which squares them, stays in range.
entries = st.floats(0.01, 100) | st.floats(-100, -0.01)
clouds = st.tuples(st.integers(2, 12), st.integers(1, 8)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=entries)
)


def measured(vectors):
    return astuple(health(np.array(vectors)))


def close(*values):
    return pytest.approx(values, abs=1e-12)


def test_equal_vectors_have_cosine_one_no_spread_and_rank_zero():
    assert measured([[0.3, -0.7, 0.1]] * 5) == close(1, 0, 0)


@pytest.mark.parametrize("count", [2, 3, 16])
def test_an_orthonormal_basis_has_cosine_zero_and_loses_one_rank_to_the_mean(count):
    assert measured(np.eye(count)) == close(0, math.sqrt(1 - 1 / count), count - 1)


def test_two_orthogonal_clusters_of_two():
    # Of 6 pairs 2 are equal; the mean is (1/2, 1/2); all lie on one line through it.
    assert measured([RIGHT, RIGHT, UP, UP]) == close(2 / 6, math.sqrt(1 - (1 / 4 + 1 / 4)), 1)


def test_unequal_singular_values_count_by_their_entropy():
    # Already centred; the columns have norms √2 and √6 / 2, shares p and 1 − p of their sum.
    tilt = [[math.sqrt(1 / 4), math.sqrt(3 / 4)], [-math.sqrt(1 / 4), -math.sqrt(3 / 4)]]
    vectors = [*tilt, [-tilt[0][0], tilt[0][1]], [tilt[0][0], -tilt[0][1]]]
    first, second = math.sqrt(4 * 1 / 4), math.sqrt(4 * 3 / 4)
    p, q = first / (first + second), second / (first + second)
    assert health(np.array(vectors)).rank == pytest.approx(math.exp(-p * math.log(p) - q * math.log(q)), abs=1e-12)


@given(clouds)
def test_the_mean_cosine_is_that_of_all_pairs_one_by_one(vectors):
    pairs = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in itertools.combinations(vectors, 2)]
    assert health(vectors).cosine == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


@given(clouds, st.floats(0.001, 1000))
def test_only_directions_count(vectors, scale):
    lengths = np.linspace(1, scale, len(vectors))[:, None]
    assert measured(vectors * lengths)[:2] == pytest.approx(measured(vectors)[:2], abs=1e-7)


def test_float32_is_measured_in_float64():
    vectors = np.tile(np.float32([0.1, 0.2, 0.3]), (1000, 1))
    assert measured(vectors) == close(1, 0, 0)


def test_what_has_no_direction_is_refused_by_its_number():
    with pytest.raises(DataError, match="no vectors"):
        health(np.zeros((0, 3)))
    with pytest.raises(NonFiniteError, match="vector 1 of 2 is not finite"):
        health(np.array([RIGHT, [0.0, np.nan, 0.0]]))
    with pytest.raises(NonFiniteError, match="vector 1 of 2 has length 0"):
        health(np.array([RIGHT, [0.0, 0.0, 0.0]]))
