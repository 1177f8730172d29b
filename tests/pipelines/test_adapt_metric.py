"""The query adapter in closed form: its formula in float64, and what it is for."""

import numpy as np

from metasearch.encoders.adapter import adapted
from metasearch.pipelines.adapt.metric import around_mean, metric_adapter, second_moment

D = 5
RNG = np.random.default_rng(0)
OFFSET, PAIRS, ANSWERS = (RNG.standard_normal(shape).astype(np.float32) for shape in (D, (7, D), (9, D)))
NONE = np.zeros((0, D), np.float32)


def scaled(rows):
    """Return Σ x xᵀ by loops, scaled so that its trace is D."""
    moment = sum(np.outer(row, row) for row in rows.astype(np.float64))
    return moment * D / np.trace(moment)


def test_the_matrix_is_the_formula_written_out():
    centred = ANSWERS.astype(np.float64) - ANSWERS.astype(np.float64).mean(0)
    alpha = 0.25 * 128 / (128 + 128)  # half of its weight with 128 queries
    unit = OFFSET / np.sqrt(sum(float(x) ** 2 for x in OFFSET))
    inverse = np.eye(D) + 20 * np.outer(unit, unit) + scaled(PAIRS) + alpha * scaled(centred)
    found = metric_adapter(OFFSET, PAIRS, ANSWERS, queries=128)
    np.testing.assert_allclose(found @ inverse, np.eye(D), rtol=0, atol=1e-6)
    assert np.array_equal(found, metric_adapter(OFFSET, PAIRS, ANSWERS, queries=128))


def test_no_difference_leaves_the_identity():
    assert np.array_equal(metric_adapter(np.zeros(D, np.float32), NONE, NONE), np.eye(D, dtype=np.float32))
    assert not second_moment(NONE).any()


def test_translations_differ_from_the_mean_of_their_means():
    one, other = np.array([[1, 0], [3, 0]], np.float32), np.array([[0, 4]], np.float32)
    # Means (2, 0) and (0, 4), and their mean (1, 2).
    assert around_mean([one, other]).tolist() == [[1, -2], [-1, 2]]
    assert around_mean([one]).shape == (0, 2)


def test_a_direction_that_all_queries_share_stops_deciding():
    pages = np.eye(3, dtype=np.float32)
    query = np.array([0.5, 0, 0.9], np.float32)  # means page 0, and looks like page 2 as all queries do
    offset = pages.mean(0) - np.array([1 / 3, 1 / 3, 1.5], np.float32)
    matrix = metric_adapter(offset, np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    assert (pages @ query).argmax() == 2
    found = adapted(query[None], matrix)
    assert (found @ pages.T).argmax() == 0
    assert np.isclose(np.linalg.norm(found), 1)
