"""Balanced scores: s(q, c) − ½ max s(q, c') over the candidates c' of the language of c."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.encoders.pool_scores import balance
from metasearch.search.query.searcher import merged


@st.composite
def scored(draw):
    """Draw scores of candidates that are often equal, `(Q, C)`, and the number of the language of each candidate."""
    languages = draw(st.lists(st.integers(0, 3), min_size=1, max_size=12))
    few = st.sampled_from([-1.0, -0.25, 0.0, 0.5, 0.75])
    rows = draw(st.lists(st.lists(few, min_size=len(languages), max_size=len(languages)), min_size=1, max_size=3))
    return np.array(rows, np.float32), np.array(languages)


def members(languages):
    return [np.flatnonzero(languages == code) for code in np.unique(languages)]


def test_each_score_is_less_by_half_of_the_best_of_its_language():
    scores = np.float32([[0.9, 0.5, 0.6, 0.4], [-0.2, -0.4, 0.8, 0.0]])
    expected = scores - np.float32([[0.9 / 2, 0.9 / 2, 0.6 / 2, 0.6 / 2], [-0.2 / 2, -0.2 / 2, 0.8 / 2, 0.8 / 2]])
    balance(scores, members(np.array([0, 0, 1, 1])))
    assert scores == pytest.approx(expected)


@given(scored())
def test_the_order_within_a_language_and_that_of_the_best_of_each_stay(drawn):
    plain, languages = drawn
    found = plain.copy()
    balance(found, members(languages))
    for before, after in zip(plain, found, strict=True):
        for columns in members(languages):
            assert (
                np.argsort(-before[columns], kind="stable").tolist()
                == np.argsort(-after[columns], kind="stable").tolist()
            )
        best = [(before[columns].max(), after[columns].max()) for columns in members(languages)]
        assert [half for _, half in best] == [np.float32(whole / 2) for whole, _ in best]


@given(scored(), st.integers(1, 14))
def test_rankings_of_single_languages_are_merged_into_that_of_all(drawn, top):
    plain, languages = drawn
    found = plain.copy()
    balance(found, members(languages))
    for before, after in zip(plain, found, strict=True):
        best = [columns[np.argsort(-before[columns], kind="stable")][:top] for columns in members(languages)]
        numbers, scores = merged([(own, before[own]) for own in best], top)
        expected = np.argsort(-after, kind="stable")[:top]
        assert numbers.tolist() == expected.tolist()
        assert scores.tolist() == after[expected].tolist()
