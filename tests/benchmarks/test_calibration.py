"""A 5 % test rejects 3 to 7 % of true nulls, in every design; and what the other tests do is not made up."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.statistics.calibration import rejected
from benchmarks.statistics.nulls import DESIGNS, Design, studies
from benchmarks.statistics.tuning import Design as Tuning
from benchmarks.statistics.tuning import covered, kept, real_differences, tuning

QUICK = [replace(design, questions=2, languages=3) for design in DESIGNS[:4]]


@pytest.mark.parametrize("design", QUICK, ids=[design.name for design in QUICK])
def test_the_main_interval_rejects_3_to_7_percent_of_true_nulls(design):
    # 700 studies: at 5 % the deviation is √(0.05 · 0.95 / 700) = 0.8 %.
    assert 0.03 <= rejected(design, 700, seed=1, methods=("main",))["main"] <= 0.07


def test_studies_have_effects_of_the_declared_sizes():
    none = dict.fromkeys(("fold", "language", "article", "question", "translation", "repeat"), 0.0)
    design = Design("of seeds alone", folds=2, seeds=3, **none)
    made = np.array(list(studies(design, 400, np.random.default_rng(0))))
    assert made.shape == (400, 2, 3, 10, 24, 7)
    assert np.ptp(made, axis=(3, 4, 5)).max() == 0.0
    assert made[..., 0, 0, 0].std() == pytest.approx(design.seed, rel=0.05)


@pytest.mark.parametrize("design", [
    Tuning(6, 8, 2, largest=0.6), Tuning(6, 8, 2, kind="skewed"), Tuning(2, 12, 1, kind="rare losses"),
    Tuning(6, 12, 1, kind="real"),
])  # fmt: skip
def test_tune_keeps_no_step_that_is_no_better(design):
    found = kept(design, 300, seed=1)
    # 300 tunings: at 5 % the deviation is √(0.05 · 0.95 / 300) = 1.3 %.
    assert found["kept"] <= 0.05 + 2 * 0.013
    assert abs(found["printed"]) < 0.5
    assert found["own"] > 0.5 or not found["kept"]


def test_skewed_designs_have_skewed_differences_without_a_mean():
    """1 - Exp(1) has the skewness -2; 0.9 · 0.05 - 0.1 · 0.45 = 0, with (0.9 · 0.1 · (0.9 - 0.1)) / 0.09^1.5 = -2.7."""
    random = np.random.default_rng(0)
    for kind, skewness in (("skewed", -2), ("rare losses", -8 / 3)):
        scores = [tuning(Tuning(2, 40, 1, kind=kind), random).scores for _ in range(500)]
        gains = np.concatenate([own[1] - own[0] for own in scores])
        assert abs(gains.mean()) < 0.005
        assert ((gains - gains.mean()) ** 3).mean() / gains.std() ** 3 == pytest.approx(skewness, abs=0.3)
    skewed = [(each**3).mean() / each.std() ** 3 for each in real_differences()]
    assert min(skewed) < -3
    assert max(abs(each.mean()) for each in real_differences()) < 1e-12


def test_intervals_of_scores_near_the_best_one_contain_the_mean_and_have_a_length():
    found = covered(12, 300, seed=1)
    assert found["inside"] >= 0.95
    assert found["flat"] == 0
