"""The widest that an interval over folds can be, from what old rows kept, against folds that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.paper.widest import widest

FOLDS, LANGUAGES = 5, 3


def row_of(values):
    """Return a difference as old rows kept it, from differences on fold × language, `(F, L)`."""
    languages = {str(i): {"difference": value} for i, value in enumerate(values.mean(axis=0))}
    d_z = values.mean() / values.std(ddof=1)
    return {"difference": values.mean(), "d_z": d_z, "pairs": values.size, "languages": languages}


def ends(values):
    """Return Student's interval over the means of folds."""
    folds = values.mean(axis=1)
    return stats.t.interval(0.95, len(folds) - 1, folds.mean(), stats.sem(folds))


@given(arrays(np.float64, (FOLDS, LANGUAGES), elements=st.floats(0.1, 1.0)).filter(lambda v: np.ptp(v) > 0.01))
def test_no_interval_over_folds_is_wider(values):
    found = widest(row_of(values), FOLDS)
    low, high = ends(values)
    rounding = 1e-6
    assert np.isnan(low) or (found.low <= low + rounding and high - rounding <= found.high)


def test_it_is_the_interval_over_folds_where_folds_shift_all_languages_alike():
    values = np.array([0.1, 0.4, 0.2, 0.9, 0.3])[:, None] + np.array([0.0, 0.1, 0.5])
    found = widest(row_of(values), FOLDS)
    assert (found.low, found.high) == pytest.approx(ends(values))
    assert found.p == pytest.approx(stats.ttest_1samp(values.mean(axis=1), 0).pvalue)
