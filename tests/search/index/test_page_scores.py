"""Scores of pages: the best window of four passages, and the mean over a page's translations."""

from math import exp, log

import numpy as np
import pytest

from metasearch.encoders.maps import Projection
from metasearch.search.index.maps import query_centre, shrunk_centre
from metasearch.search.index.page_scores import group_means, page_scores, sharpness_for, spread_of

SCORES = np.array([[0.0, 0.4, 0.4, 0.4, 0.4, 0.3]])
STARTS = np.array([0, 5])
T = 10.0


def smooth(*scores):
    return log(sum(exp(T * each) for each in scores) / len(scores)) / T


def test_a_page_has_the_smooth_maximum_of_its_best_window_of_four():
    """The first page has two windows, of which the second has four equal scores; the second page has one passage."""
    assert page_scores(SCORES, STARTS, T)[0] == pytest.approx([0.4, 0.3])
    assert page_scores(SCORES[:, :4], np.array([0]), T)[0] == pytest.approx([smooth(0.0, 0.4, 0.4, 0.4)])


def test_no_window_crosses_the_end_of_a_page():
    """Pages of three, two and five passages."""
    scores = np.array([[0.1, 0.2, 0.3, 0.9, 0.8, 0.5, 0.1, 0.1, 0.1, 0.6]])
    expected = [smooth(0.1, 0.2, 0.3), smooth(0.9, 0.8), smooth(0.1, 0.1, 0.1, 0.6)]
    assert page_scores(scores, np.array([0, 3, 5]), T)[0] == pytest.approx(expected)


def test_it_is_the_mean_at_zero_the_best_passage_without_a_sharpness_and_never_overflows():
    assert page_scores(SCORES[:, :2], np.array([0]), 0.0)[0] == pytest.approx([0.2])
    best = page_scores(SCORES.astype(np.float32), STARTS, None)
    assert (best.dtype, best.tolist()) == (np.float32, [[np.float32(0.4), np.float32(0.3)]])
    assert page_scores(SCORES, STARTS, 1e6)[0] == pytest.approx([0.4, 0.3], abs=1e-5)


def test_the_sharpness_is_one_and_a_half_over_the_spread_of_scores():
    scores = np.array([[0.0, 0.2], [0.0, 0.4]])  # standard deviations 0.1 and 0.2
    assert sharpness_for(scores) == pytest.approx(2 / 0.15)
    assert spread_of(sharpness_for(scores)) == pytest.approx(0.15)
    assert (sharpness_for(np.ones((2, 3))), spread_of(0.0)) == (0.0, 0.0)


def test_a_page_is_told_the_mean_of_its_translations():
    assert group_means(np.array([[1.0, 3.0, 5.0]]), np.array([0, 1, 0])).tolist() == [[3.0, 3.0, 3.0]]
    assert group_means(np.array([[1.0, 3.0, 6.0]]), np.array([0, 1, 0])).tolist() == [[3.5, 3.0, 3.5]]


def test_the_centre_of_queries_goes_half_way_to_spans_and_then_to_real_queries():
    """Spans have the means (2, 0) and (4, 2), so that m₀ = (3, 1) and c₀ = (1, 1) + ½ (2, 0) = (2, 1)."""
    projection = Projection(np.array([1.0, 1.0]), np.zeros((0, 2)), ("de", "en"))
    spans = {"de": np.array([[1.0, 0.0], [3.0, 0.0]]), "en": np.array([[4.0, 2.0]])}
    centre = query_centre(projection, spans)
    assert centre.tolist() == [2.0, 1.0]
    # 10 queries have half of the weight, 30 three quarters.
    assert shrunk_centre(centre, np.array([4.0, 1.0]), 10).tolist() == [3.0, 1.0]
    assert shrunk_centre(centre, np.array([4.0, 1.0]), 30).tolist() == [3.5, 1.0]
