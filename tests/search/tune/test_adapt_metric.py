"""The query adapter in closed form: its formula in float64."""

import numpy as np

from metasearch.search.tune.adapt.metric import metric_adapter

D = 5
RNG = np.random.default_rng(0)
OFFSET, ANSWERS = (RNG.standard_normal(shape).astype(np.float32) for shape in (D, (9, D)))
NONE = np.zeros((0, D), np.float32)


def test_the_matrix_is_the_formula_written_out():
    centred = ANSWERS.astype(np.float64) - ANSWERS.astype(np.float64).mean(0)
    moment = sum(np.outer(row, row) for row in centred)
    alpha = 0.25 * 128 / (128 + 128)  # half of its weight with 128 queries
    unit = OFFSET / np.sqrt(sum(float(x) ** 2 for x in OFFSET))
    inverse = np.eye(D) + 20 * np.outer(unit, unit) + alpha * moment * D / np.trace(moment)
    found = metric_adapter(OFFSET, ANSWERS, queries=128)
    np.testing.assert_allclose(found @ inverse, np.eye(D), rtol=0, atol=1e-6)
    assert np.array_equal(found, metric_adapter(OFFSET, ANSWERS, queries=128))


def test_no_difference_leaves_the_identity():
    rounding = np.float32(1e-7) * RNG.standard_normal((9, D)).astype(np.float32)
    for offset, answers in ((0 * OFFSET, NONE), (rounding[0], ANSWERS[:1] + rounding)):
        assert np.array_equal(metric_adapter(offset, answers, queries=9), np.eye(D, dtype=np.float32))
