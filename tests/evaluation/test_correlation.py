"""Pearson's and Spearman's correlation, and where they are undefined."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation.metrics.pairs import pearson, spearman

SCORES = st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=2, max_size=20)


# scipy says so of scores that differ by rounding alone.
@pytest.mark.filterwarnings("ignore::scipy.stats.NearConstantInputWarning")
@given(SCORES)
def test_correlations_are_those_of_numpy_and_scipy_and_never_nan(drawn):
    predicted, gold = (np.array(side) for side in zip(*drawn, strict=True))
    assume(np.ptp(predicted) > 0 and np.ptp(gold) > 0)
    r, rho = pearson(predicted, gold), spearman(predicted, gold)
    assert -1 - 1e-9 <= r <= 1 + 1e-9
    assert rho == pytest.approx(stats.spearmanr(predicted, gold).statistic, abs=1e-12)
    if np.ptp(predicted) > 1e-6 and np.ptp(gold) > 1e-6:  # numpy loses smaller ones to rounding
        assert r == pytest.approx(np.corrcoef(predicted, gold)[0, 1], abs=1e-6)


@pytest.mark.parametrize("correlate", [pearson, spearman])
@pytest.mark.parametrize(
    ("predicted", "gold", "error", "says"),
    [
        ([0.5, 0.5, 0.5], [0.0, 0.5, 1.0], DataError, "the 3 predicted scores are constant"),
        ([0.0, 0.5, 1.0], [0.2, 0.2, 0.2], DataError, "the 3 gold scores are constant"),
        ([0.5], [0.5], DataError, "the 1 predicted scores are constant"),
        ([0.5, np.nan], [0.0, 1.0], NonFiniteError, "a predicted score is not finite"),
        ([0.5, 0.1], [0.0, np.inf], NonFiniteError, "a gold score is not finite"),
    ],
)
def test_an_undefined_correlation_is_an_error_never_nan(correlate, predicted, gold, error, says):
    with pytest.raises(error, match=says):
        correlate(np.array(predicted), np.array(gold))
