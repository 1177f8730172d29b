"""Rows that are kept of cells give the study again without its folder."""

import json

import pytest

from benchmarks.common.rows import latest_rows
from benchmarks.paper import cells
from metasearch.cli.train import configure
from metasearch.config.library import shipped
from metasearch.config.measure import REORDERED
from metasearch.errors import DataError
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study
from metasearch.pipelines.train import TrainRun

pytestmark = pytest.mark.slow  # a run is made

OPTIONS = {
    **{"task": "demo", "mode": "mono-mono", "learner": "fine-tune", "recipe": None, "encoder": "tiny"},
    **{"epochs": None, "include": (), "data": None},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    config = configure(assignments=("neutralise=after",), max_steps=1, fold=1, device="cpu", **OPTIONS)
    return read_study([TrainRun(config, tmp_path_factory.mktemp("runs") / "run").execute().folder])


@pytest.fixture(scope="module")
def rows(study):
    # As they are read back from a file.
    return [json.loads(json.dumps(row)) for row in cells.rows_of(study, "e5")]


def test_there_is_a_row_of_each_arm_without_a_text_of_the_data(study, rows):
    assert [row["learner"] for row in rows] == ["zero-shot", "fine-tune", "fine-tune+neutral"]
    assert {(row["fold"], row["seed"], row["encoder"]) for row in rows} == {(1, 0, "e5")}
    written = json.dumps(rows, ensure_ascii=False)
    assert not any(question.text in written for question in study.of(study.arms[0])[0].questions.ranking.questions)


def test_values_are_those_of_every_question_to_four_digits(study, rows):
    scored = study.of(study.arms[1])[0]
    column = scored.questions.columns["map@20", "multilingual", "el", "all"]
    assert rows[1]["values"]["el"] == [round(value * cells.DIGITS) for value in column]


def test_the_study_that_comes_back_has_the_same_differences(study, rows, tmp_path):
    back = cells.restored(rows, str(shipped() / "demo"), tmp_path / "back")
    before, after = compare(study), compare(back)
    assert [each.arm.label for each in after.arms] == [each.arm.label for each in before.arms]
    for one, other in zip(before.arms, after.arms, strict=True):
        assert other.difference == pytest.approx(one.difference, abs=1 / cells.DIGITS)
        assert other.interval.low == pytest.approx(one.interval.low, abs=2 / cells.DIGITS)


def test_other_data_than_that_of_the_rows_is_refused(rows, tmp_path):
    with pytest.raises(DataError, match="the rows were made on data 0000; demo is "):
        cells.restored([{**row, "data": "0000"} for row in rows], str(shipped() / "demo"), tmp_path / "back")


def test_cells_that_have_a_row_are_not_missing(rows):
    arms = ["zero-shot", "fine-tune:mono-mono", "maml:trans"]
    assert cells.missing(rows, arms, folds=[0, 1, 2], seeds=[0, 1]) == [
        cells.Missing(0, tuple(arms), (0, 2)),
        cells.Missing(0, ("maml:trans",), (1,)),
        # The encoder as it is does not depend on the seed.
        cells.Missing(1, tuple(arms), (0, 2)),
        cells.Missing(1, ("fine-tune:mono-mono", "maml:trans"), (1,)),
    ]
    # What was trained through a map is another arm.
    assert cells.missing(rows, ["neutral+fine-tune:mono-mono"], [1], [0]) == [
        cells.Missing(0, ("neutral+fine-tune:mono-mono",), (1,))
    ]


def test_a_row_is_known_again_by_what_was_trained_and_how(rows):
    other = {**rows[1], "config": {**rows[1]["config"], "precision": "bf16"}}
    assert len({cells.identity(row) for row in [*rows, *rows, other]}) == 4
    # Whatever a run trains, the encoder as it was is the same.
    assert cells.identity({**rows[0], "config": other["config"]}) == cells.identity(rows[0])


def test_seeds_in_two_precisions_are_one_arm(rows, tmp_path):
    trained = {**rows[1], "config": {**rows[1]["config"], "precision": "fp32"}}
    again = {**trained, "seed": 1, "config": {**rows[1]["config"], "seed": 1, "precision": "bf16"}}
    apart = cells.restored([trained, again], str(shipped() / "demo"), tmp_path / "apart")
    joined = cells.restored(map(cells.of_any_precision, [trained, again]), str(shipped() / "demo"), tmp_path / "joined")
    assert [len(study.arms) for study in (apart, joined)] == [2, 1]
    assert [scored.seed for scored in joined.of(joined.arms[0])] == [0, 1]
    # Of a seed in both it is the last one.
    in_both = [trained, {**trained, "config": {**trained["config"], "precision": "bf16"}, "bias": 7}]
    assert [row["bias"] for row in latest_rows(map(cells.of_any_precision, in_both), cells.identity)] == [7]


def test_rows_are_of_all_pools_that_a_cell_was_scored_in(study, rows, monkeypatch):
    found = cells.rows_of_pools(study, "e5")
    assert [row["pool"] for row in found] == [pool for pool in ("multilingual", *REORDERED) for _ in rows]
    # A cell without one of the pools has no row of it.
    columns = study.of(study.arms[0])[0].questions.columns
    for cell in [cell for cell in columns if cell[1] == "balanced"]:
        monkeypatch.delitem(columns, cell)
    assert len(cells.rows_of_pools(study, "e5")) == len(found) - 1
