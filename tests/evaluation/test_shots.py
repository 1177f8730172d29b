"""The curve of scores by shots: means over draws and questions, gains on equal questions, intervals over articles."""

import numpy as np
import pytest
from scipy import stats

from metasearch.evaluation.shots import Asked, curve
from metasearch.runs.rows import MEAN

DRAWS = {
    "de": [
        Asked(["a", "a", "b", "c"], {0: np.array([0.1, 0.3, 0.5, 0.7]), 4: np.array([0.2, 0.4, 0.9, 0.7])}),
        Asked(["a", "b", "c"], {0: np.array([0.3, 0.5, 0.7]), 4: np.array([0.5, 0.7, 0.8])}),
    ],
    "en": [Asked(["a", "b", "c"], {0: np.full(3, 0.5), 4: np.array([0.6, 0.5, 0.7])})] * 2,
}


def found():
    return {(row["language"], row["shots"]): row for row in curve(DRAWS)}


def test_a_score_is_the_mean_over_the_questions_of_all_draws_and_a_gain_that_of_their_differences():
    rows = found()
    assert list(rows) == [(language, shots) for shots in (0, 4) for language in ("de", "en", MEAN)]
    assert rows["de", 0]["value"] == pytest.approx((0.1 + 0.3 + 0.5 + 0.7 + 0.3 + 0.5 + 0.7) / 7)
    assert rows["de", 4]["gain"] == pytest.approx((0.1 + 0.1 + 0.4 + 0.0 + 0.2 + 0.2 + 0.1) / 7)
    assert rows["en", 4]["gain"] == pytest.approx((0.1 + 0.0 + 0.2) / 3)
    assert rows[MEAN, 4]["gain"] == pytest.approx((rows["de", 4]["gain"] + rows["en", 4]["gain"]) / 2)
    assert [rows[MEAN, 0][name] for name in ("gain", "gain_low", "gain_high")] == [0, 0, 0]
    assert rows["en", 4]["count"] == 3


def test_an_interval_of_equal_articles_is_students_over_them():
    row, gains = found()["en", 4], [0.1, 0.0, 0.2]
    reach = stats.t.ppf(0.975, 2) * np.std(gains, ddof=1) / 3**0.5
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((0.1 - reach, 0.1 + reach))
    assert row["gain_variance"] == pytest.approx(np.var(gains, ddof=1) / 3)
