"""The small studies: which points they have, what is kept of one, and that none is run twice."""

from dataclasses import fields

import metasearch as ms
from benchmarks.common.rows import read_rows
from benchmarks.paper import grid, small_studies
from benchmarks.paper.small_study_tables import of_encoder, points_table
from metasearch.errors import NonFiniteError


def test_one_value_is_changed_at_a_time_and_the_base_stands_once():
    found = grid.points("trans", "x", "maml", ["outer.lr=1e-5,1e-4", "dropout=true"], ["outer.lr=1e-4"])
    assert [point.changes for point in found] == [(), ("outer.lr=1e-5",), ("dropout=true",)]  # 1e-4 is the base
    assert [point.recipe.outer.lr for point in found] == [1e-4, 1e-5, 1e-4]


def test_a_point_is_known_again_by_its_settings_and_not_by_the_name_of_its_recipe():
    base, other = grid.points("trans", "x", "maml", ["outer.lr=3e-4"], [])
    renamed = grid.Point("base", (), base.recipe.model_copy(update={"recipe": "maml-x", "sources": {}}))
    assert renamed.key(fold=0) == base.key(fold=0)
    assert len({base.key(fold=0), base.key(fold=1), other.key(fold=0)}) == 3


def test_the_points_of_the_kept_rows_are_known_again():
    """Otherwise the commands of the README would run them a second time."""
    kept = of_encoder(read_rows(small_studies.ROWS), "lareqa-sentences", "mini")
    pace = ["budget.eval_every=10", "budget.patience=0", "budget.meta_train=240", "budget.meta_valid=80"]
    shared = {field.name for field in fields(small_studies.Setting)}
    for row in kept:
        base = [*pace, *row["changes"]]
        (point,) = grid.points(row["mode"], row["encoder"], row["learner"], [], base)
        assert point.key(**{name: row[name] for name in shared}) == row["key"]


def test_a_loss_that_is_not_finite_is_kept_as_a_finding(monkeypatch):
    def diverge(*_, callback, **__):
        callback.on_dev(0, 0.25, False)
        raise NonFiniteError("loss is not finite at step 1")

    monkeypatch.setattr(ms, "fit", diverge)
    point = grid.points("trans", "tiny", "maml", [], [])[0]
    row = small_studies.measured(point, small_studies.Setting("demo", "trans", "tiny", "f", "d", 0, 0, 4), None)
    assert (row["zero_shot"], row["best"], row["best_step"]) == (0.25, None, None)
    assert row["error"] == "loss is not finite at step 1"
    assert "loss is not finite" in points_table([row])
