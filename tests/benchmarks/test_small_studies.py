"""The small studies: which points they have, what is kept of one, and that none is run twice."""

import pytest
from click.testing import CliRunner

import metasearch as ms
from benchmarks.paper import grid, small_studies
from benchmarks.paper.small_study_tables import of_encoder, points_table
from metasearch.errors import ConfigError, NonFiniteError


def test_one_value_is_changed_at_a_time_and_the_base_stands_once():
    found = grid.points("trans", "x", "maml", ["outer.lr=1e-5,1e-4", "dropout=true"], ["outer.lr=1e-4"], "retrieval")
    assert [point.changes for point in found] == [(), ("outer.lr=1e-5",), ("dropout=true",)]  # 1e-4 is the base
    assert [point.recipe.outer.lr for point in found] == [1e-4, 1e-5, 1e-4]


def test_crossed_axes_have_every_value_of_one_with_every_one_of_the_other():
    axes = ["outer.lr=1e-5,1e-4", "options.inner_lr=1e-3,1e-2,1e-1"]
    found = grid.points("trans", "x", "maml", axes, [], "retrieval", crossed=True)
    pairs = {(point.recipe.outer.lr, point.recipe.options["inner_lr"]) for point in found}
    assert pairs == {(outer, inner) for outer in (1e-5, 1e-4) for inner in (1e-3, 1e-2, 1e-1)}
    assert len(found) == 2 * 3  # the base, 1e-5 and 1e-3, is one of them


def test_a_point_of_meta_tasks_changes_both_phases():
    smallest = grid.points("trans", "x", "maml", ["meta-tasks"], [], "retrieval")[1]
    assert (smallest.recipe.budget.meta_train, smallest.recipe.budget.meta_valid) == (56, 16)


@pytest.mark.parametrize(
    ("learner", "kind", "lacks"),
    [
        ("fine-tune", "retrieval", {"inner-lr", "inner-steps", "order", "kd-weight", "kd-reduction", "student-steps"}),
        ("maml", "retrieval", {"kd-weight", "kd-reduction", "student-steps"}),
        ("maml-align", "retrieval", set()),
        ("maml-align", "similarity", {"negatives", "n-neg", "queries", "margin", "distance"}),
    ],
)
def test_a_learner_has_the_axes_of_its_own_options_and_of_the_task(learner, kind, lacks):
    assert set(grid.AXES) - set(grid.fitting(learner, kind)) == lacks


def test_each_axis_has_the_papers_value_of_maml_align_and_others_that_are_recipes():
    found = grid.points("mono-bi-multi", "x", "maml-align", list(grid.AXES), [], "retrieval")
    assert len(found) == 1 + sum(len(values) - 1 for values in grid.AXES.values())


@pytest.mark.parametrize(
    ("axis", "said"), [("outer_lr", "outer-lr"), ("kd-weight", "learner 'maml' has none"), ("outer.lr=fast", "fast")]
)
def test_an_axis_that_is_not_there_is_named(axis, said):
    with pytest.raises(ConfigError, match=said):
        grid.points("trans", "x", "maml", [axis], [], "retrieval")


def test_a_point_is_known_again_by_its_settings_and_not_by_the_name_of_its_recipe():
    base, other = grid.points("trans", "x", "maml", ["outer.lr=3e-4"], [], "retrieval")
    renamed = grid.Point("base", (), base.recipe.model_copy(update={"recipe": "maml-x", "sources": {}}))
    assert renamed.key(fold=0) == base.key(fold=0)
    assert len({base.key(fold=0), base.key(fold=1), other.key(fold=0)}) == 3


def test_rows_of_another_encoder_that_had_the_same_name_are_not_listed():
    rows = [{"task": "demo", "encoder": "mini", "fingerprint": f} for f in ("old", "new", "old", "new")]
    other = [{"task": "demo", "encoder": "tiny", "fingerprint": "t"}, {"task": "stsb", "encoder": "mini"}]
    assert of_encoder([*rows, *other], "demo", "mini") == rows[1::2]
    assert of_encoder([*rows, *other], "demo", "mini", "old") == rows[0::2]
    assert of_encoder(other, "demo", "mini") == []


def test_a_loss_that_is_not_finite_is_kept_as_a_finding(monkeypatch):
    def diverge(*_, listener, **__):
        listener.on_dev(0, 0.25, False)
        raise NonFiniteError("loss is not finite at step 1")

    monkeypatch.setattr(ms, "fit", diverge)
    point = grid.points("trans", "tiny", "maml", [], [], "retrieval")[0]
    row = small_studies.measured(point, small_studies.Setting("demo", "trans", "tiny", "f", "d", 0, 0, 4), None)
    assert (row["zero_shot"], row["best"], row["best_step"]) == (0.25, None, None)
    assert row["error"] == "loss is not finite at step 1"
    assert "loss is not finite" in points_table([row])


@pytest.mark.parametrize("words", [[], ["--learner", "maml"]])
def test_a_learner_is_named_with_its_mode(words):
    result = CliRunner().invoke(small_studies.main, ["--encoder", "tiny", *words])
    assert result.exit_code == 2
    assert "maml:trans" in result.output
