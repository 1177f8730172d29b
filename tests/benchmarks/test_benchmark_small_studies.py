"""The small studies: which points they have, what is kept of one, and that none is run twice."""

import importlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from metasearch.errors import ConfigError

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _beside(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def grid():
    return importlib.import_module("_grid")


@pytest.fixture
def studies():
    return importlib.import_module("small_studies")


def test_one_value_is_changed_at_a_time_and_the_base_stands_once(grid):
    found = grid.points("trans", "x", "maml", ["outer.lr=1e-5,1e-4", "dropout=true"], ["outer.lr=1e-4"], "retrieval")
    assert [point.changes for point in found] == [(), ("outer.lr=1e-5",), ("dropout=true",)]  # 1e-4 is the base
    assert [point.recipe.outer.lr for point in found] == [1e-4, 1e-5, 1e-4]


def test_crossed_axes_have_every_value_of_one_with_every_one_of_the_other(grid):
    axes = ["outer.lr=1e-5,1e-4", "options.inner_lr=1e-3,1e-2,1e-1"]
    found = grid.points("trans", "x", "maml", axes, [], "retrieval", crossed=True)
    pairs = {(point.recipe.outer.lr, point.recipe.options["inner_lr"]) for point in found}
    assert pairs == {(outer, inner) for outer in (1e-5, 1e-4) for inner in (1e-3, 1e-2, 1e-1)}
    assert len(found) == 2 * 3  # the base, 1e-5 and 1e-3, is one of them


def test_a_point_of_meta_tasks_changes_both_phases(grid):
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
def test_a_learner_has_the_axes_of_its_own_options_and_of_the_task(grid, learner, kind, lacks):
    assert set(grid.AXES) - set(grid.fitting(learner, kind)) == lacks


def test_each_axis_has_the_papers_value_of_maml_align_and_others_that_are_recipes(grid):
    found = grid.points("mono-bi-multi", "x", "maml-align", list(grid.AXES), [], "retrieval")
    assert len(found) == 1 + sum(len(values) - 1 for values in grid.AXES.values())


@pytest.mark.parametrize(
    ("axis", "said"), [("outer_lr", "outer-lr"), ("kd-weight", "learner 'maml' has none"), ("outer.lr=fast", "fast")]
)
def test_an_axis_that_is_not_there_is_named(grid, axis, said):
    with pytest.raises(ConfigError, match=said):
        grid.points("trans", "x", "maml", [axis], [], "retrieval")


def test_a_point_is_known_again_by_its_settings_and_not_by_the_name_of_its_recipe(grid):
    base, other = grid.points("trans", "x", "maml", ["outer.lr=3e-4"], [], "retrieval")
    renamed = grid.Point("base", (), base.recipe.model_copy(update={"recipe": "maml-x", "sources": {}}))
    assert renamed.key(fold=0) == base.key(fold=0)
    assert len({base.key(fold=0), base.key(fold=1), other.key(fold=0)}) == 3


QUICK = ("budget.meta_train=2", "budget.meta_valid=2", "budget.meta_batch=1", "budget.epochs=1", "episodes.k=2")


def test_points_are_trained_once_scored_on_dev_alone_and_listed_best_first(tmp_path, studies, monkeypatch):
    path = tmp_path / "small.jsonl"
    looked = []
    evaluate = studies.compose.evaluate
    monkeypatch.setattr(studies.compose, "evaluate", lambda e, data, m: looked.append(data) or evaluate(e, data, m))
    words = ["--task", "demo", "--encoder", "tiny", "--learner", "fine-tune:mono-mono", "--axis", "outer.lr=1e-5,1e-3"]
    words += [word for each in QUICK for word in ("--set", each)]
    words += ["--max-steps", "4", "--every", "2", "--results", str(path)]
    result = CliRunner().invoke(studies.main, words, catch_exceptions=False)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["changes"] for row in rows] == [[], ["outer.lr=1e-5"], ["outer.lr=1e-3"]]
    for row in rows:
        assert [step for step, _ in row["curve"]] == [0, 2, 4]
        assert row["best"] == max(score for step, score in row["curve"] if step)
        assert row["zero_shot"] == row["curve"][0][1]
    assert {frozenset(data.groups) for data in looked} == {frozenset(_dev().groups)}
    ranked = sorted(rows, key=lambda row: -row["best"])
    listed = [line.split("|")[3].strip() for line in result.output.splitlines() if line.startswith("| fine-tune")]
    assert listed == [", ".join(row["changes"]) or "none" for row in ranked]

    again = CliRunner().invoke(studies.main, words, catch_exceptions=False)
    assert "3 points, 3 of them done" in again.output
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


def test_rows_of_another_encoder_that_had_the_same_name_are_not_listed(studies):
    rows = [{"task": "demo", "encoder": "mini", "fingerprint": f} for f in ("old", "new", "old", "new")]
    other = [{"task": "demo", "encoder": "tiny", "fingerprint": "t"}, {"task": "stsb", "encoder": "mini"}]
    assert studies.of_encoder([*rows, *other], "demo", "mini") == rows[1::2]
    assert studies.of_encoder([*rows, *other], "demo", "mini", "old") == rows[0::2]
    assert studies.of_encoder(other, "demo", "mini") == []


def _dev():
    return importlib.import_module("metasearch.data.benchmark").load_benchmark("demo").split.dev


def test_a_loss_that_is_not_finite_is_kept_as_a_finding(studies, grid, monkeypatch):
    def diverge(*_, listener, **__):
        listener.on_dev(0, 0.25, False)
        raise studies.NonFiniteError("loss is not finite at step 1")

    monkeypatch.setattr(studies.compose, "fit", diverge)
    point = grid.points("trans", "tiny", "maml", [], [], "retrieval")[0]
    row = studies.measured(point, studies.Setting("demo", "trans", "tiny", "f", "d", 0, 0, 4), None)
    assert (row["zero_shot"], row["best"], row["best_step"]) == (0.25, None, None)
    assert row["error"] == "loss is not finite at step 1"
    assert "loss is not finite" in studies.table([row])


@pytest.mark.parametrize("words", [[], ["--learner", "maml"]])
def test_a_learner_is_named_with_its_mode(studies, words):
    result = CliRunner().invoke(studies.main, ["--encoder", "tiny", *words])
    assert result.exit_code == 2
    assert "maml:trans" in result.output
