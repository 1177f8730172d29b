"""Rows that are kept of cells give the study again without its folder."""

import json

import pytest

from benchmarks.paper.cells import DIGITS, Missing, identity, missing, restored, rows_of
from metasearch.cli.train import configure
from metasearch.errors import DataError
from metasearch.jobs import train
from metasearch.spec.library import shipped
from metasearch.study.compare import compare
from metasearch.study.read import read_study

OPTIONS = {"task": "demo", "learner": "fine-tune", "recipe": None, "epochs": None, "include": (), "data": None}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    config = configure(
        mode="mono-mono",
        encoder="tiny",
        assignments=("neutralise=after",),
        max_steps=1,
        fold=1,
        device="cpu",
        **OPTIONS,
    )
    return read_study([train.begin(config, tmp_path_factory.mktemp("runs") / "run").folder])


@pytest.fixture(scope="module")
def rows(study):
    # As they are read back from a file.
    return [json.loads(json.dumps(row)) for row in rows_of(study)]


def test_there_is_a_row_of_each_arm_without_a_text_of_the_data(study, rows):
    assert [row["learner"] for row in rows] == ["zero-shot", "fine-tune", "fine-tune+neutral"]
    assert {(row["fold"], row["seed"], row["encoder"]) for row in rows} == {(1, 0, "tiny")}
    written = json.dumps(rows, ensure_ascii=False)
    assert not any(question.text in written for question in study.of(study.arms[0])[0].questions.ranking.questions)


def test_values_are_those_of_every_question_to_four_digits(study, rows):
    scored = study.of(study.arms[1])[0]
    column = scored.questions.columns["map@20", "multilingual", "el", "all"]
    assert rows[1]["values"]["el"] == [round(value * DIGITS) for value in column]


def test_the_study_that_comes_back_has_the_same_differences(study, rows, tmp_path):
    back = restored(rows, str(shipped() / "demo"), tmp_path / "back")
    before, after = compare(study, resamples=200), compare(back, resamples=200)
    assert [each.arm.label for each in after.arms] == [each.arm.label for each in before.arms]
    for one, other in zip(before.arms, after.arms, strict=True):
        assert other.difference == pytest.approx(one.difference, abs=1 / DIGITS)
        assert other.interval.low == pytest.approx(one.interval.low, abs=2 / DIGITS)


def test_other_data_than_that_of_the_rows_is_refused(rows, tmp_path):
    with pytest.raises(DataError, match="the rows were made on data 0000; demo is "):
        restored([{**row, "data": "0000"} for row in rows], str(shipped() / "demo"), tmp_path / "back")


def test_cells_that_have_a_row_are_not_missing(rows):
    arms = ["zero-shot", "fine-tune:mono-mono", "maml:trans"]
    assert missing(rows, arms, folds=[0, 1, 2], seeds=[0, 1]) == [
        Missing(0, tuple(arms), (0, 2)),
        Missing(0, ("maml:trans",), (1,)),
        Missing(1, tuple(arms), (0, 1, 2)),
    ]
    # What was trained through a map is another arm.
    assert missing(rows, ["neutral+fine-tune:mono-mono"], [1], [0]) == [
        Missing(0, ("neutral+fine-tune:mono-mono",), (1,))
    ]


def test_a_row_is_known_again_by_what_was_trained_and_how(rows):
    other = {**rows[1], "config": {**rows[1]["config"], "precision": "bf16"}}
    assert len({identity(row) for row in [*rows, *rows, other]}) == 4
    # Whatever a run trains, the encoder as it was is the same.
    assert identity({**rows[0], "config": other["config"]}) == identity(rows[0])
