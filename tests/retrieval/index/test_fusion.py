"""Reciprocal rank fusion."""

import numpy as np

from metasearch.retrieval.index.fusion import fuse


def test_a_row_has_the_sum_of_the_reciprocals_of_its_ranks_plus_60():
    rows, scores = fuse([np.array([4, 9, 2]), np.array([2, 4])], top=3)
    assert rows.tolist() == [4, 2, 9]
    np.testing.assert_allclose(scores, [1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62], rtol=1e-6)


def test_of_equal_scores_the_lower_row_is_first():
    rows, _ = fuse([np.array([8, 5]), np.array([5, 8])], top=2)
    assert rows.tolist() == [5, 8]


def test_a_ranking_may_be_empty():
    rows, _ = fuse([np.array([], np.int64), np.array([3])], top=5)
    assert rows.tolist() == [3]
    assert fuse([], top=5)[0].tolist() == []
