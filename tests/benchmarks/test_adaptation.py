"""The study of adapters on frozen vectors: choice of rates and paired differences."""

import sys
from functools import partial

import numpy as np
import pytest

from benchmarks.learners import register
from benchmarks.paper import adaptation
from benchmarks.paper.adapter_cells import INNER, MOST, OUTER, VARIANTS, Cell, best_rates, search
from benchmarks.paper.adapter_tables import gain
from metasearch.config import registry


def test_a_best_rate_at_the_edge_extends_the_grid():
    tried = []

    def score(best, outer, inner):
        tried.append((outer, inner))
        return -abs(np.log(outer / best)) - (0 if inner is None else abs(np.log(inner / INNER[1])))

    search(partial(score, OUTER[1]), inner=True)
    assert tried == [*((outer, INNER[1]) for outer in OUTER), *((OUTER[1], inner) for inner in INNER)]
    tried.clear()
    search(partial(score, OUTER[0] / 10), inner=False)
    # 3e-4 / (1e-3 / 3e-4) = 9e-5, then 2.7e-5, of which the first has no better one beyond it.
    assert tried == [*((outer, None) for outer in OUTER), (9e-5, None), (2.7e-5, None), (8.1e-6, None)]
    assert len(tried) == MOST


def test_other_forms_of_maml_align_have_its_rates_and_each_fold_its_own():
    rows = [
        {"task": "stsb", "variant": "align", "fold": fold, "outer": outer, "inner": 0.2, "dev": dev, "test": {}}
        for fold, outer, dev in ((0, 1e-3, 0.5), (0, 3e-3, 0.6), (1, 1e-3, 0.7))
    ]
    assert best_rates(rows, "stsb", "align kd=0", 0) == (3e-3, 0.2)
    assert best_rates(rows, "stsb", "align", 1) == (1e-3, 0.2)


def test_gains_pair_tasks_and_vary_over_folds():
    zero = {("a", "de"): 10.0, ("a", "en"): 20.0, ("b", "de"): 30.0, ("b", "en"): 30.0}
    one = {("a", "de"): 11.0, ("a", "en"): 21.0, ("b", "de"): 33.0, ("c", "de"): 99.0}
    # (1 + 1 + 3) / 3
    assert gain(one, zero).startswith("+1.67 [")


@pytest.fixture
def plug_ins(monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    register()
    yield
    registry._offered.cache_clear()


@pytest.mark.usefixtures("plug_ins")
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_recipe_of_a_variant_exists_and_reads_no_label_of_dev(variant):
    assert Cell("demo", variant, 0, 1e-3, None).recipe.budget.meta_valid == 0


@pytest.mark.slow
def test_a_cell_trains_an_adapter_on_known_vectors_and_scores_dev_or_test(tmp_path, monkeypatch):
    monkeypatch.setattr(adaptation, "ENCODER", "tiny")
    bench = adaptation.Bench("demo", None, tmp_path)
    grid = bench.train(Cell("demo", "maml", 0, 1e-3, 0.2))
    assert grid["test"] == {}
    assert grid["dev"] > 0
    tested = bench.train(Cell("demo", "maml", 0, 1e-3, 0.2, test=True))
    assert tested["dev"] == grid["dev"]
    assert tested["untrained"]["mean"] > 0
