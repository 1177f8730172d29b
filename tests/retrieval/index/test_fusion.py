"""Reciprocal rank fusion."""

import numpy as np

from metasearch.retrieval.index.fusion import fuse


def test_a_row_has_the_sum_of_the_reciprocals_of_its_ranks_plus_60():
    rows, scores = fuse([np.array([4, 9, 2]), np.array([2, 4])], top=3)
    assert rows.tolist() == [4, 2, 9]
    np.testing.assert_allclose(scores, [1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62], rtol=1e-6)
