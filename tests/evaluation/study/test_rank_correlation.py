"""Mean rank correlation of translated questions (arXiv:2509.06195), against sums by hand and scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from metasearch.evaluation.study.bias import correlations_by_language, rank_correlations

tops = st.integers(2, 8).flatmap(lambda k: st.tuples(*[st.permutations(range(12)).map(lambda p: p[:k])] * 2))


def correlation(first, second):
    return rank_correlations(np.array([first]), np.array([second]))[0]


@given(tops)
def test_it_is_scipys_of_the_union_with_ties_below(pair):
    first, second = pair
    union = sorted({*first, *second})
    places = [[top.index(c) if c in top else len(top) for c in union] for top in pair]
    assert correlation(first, second) == pytest.approx(spearmanr(*places).statistic, abs=1e-12)


@given(st.integers(2, 20))
def test_equal_tops_have_1_reversed_ones_minus_1_and_disjoint_ones_what_is_documented(k):
    top = np.arange(k)
    assert correlation(top, top) == pytest.approx(1)
    assert correlation(top, top[::-1]) == pytest.approx(-1)
    assert correlation(top, top + k) == pytest.approx(-6 * k**2 / (7 * k**2 - 1))


def test_means_are_over_translations_then_questions_then_languages():
    """Question p in three languages, q in two, r in one; a language counts its own questions."""
    top = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1], [0, 1, 2], [2, 1, 0], [5, 6, 7]])
    ids, groups = ["p", "q", "p", "q", "p", "r"], np.array([0, 0, 1, 1, 2, 0])
    p_01, p_02, p_12, q_01 = 0.5, -1.0, 1 - 6 * (4 + 1 + 1) / 24, 1.0
    found = correlations_by_language(top, ids, groups, 4)
    assert found[:3] == pytest.approx(
        [((p_01 + p_02) / 2 + q_01) / 2, ((p_01 + p_12) / 2 + q_01) / 2, (p_02 + p_12) / 2]
    )
    assert math.isnan(found[3])
