"""Language bias of what runs have kept, averaged over folds and seeds, and its tables."""

import math

import numpy as np
import pytest

from helpers.rankings import ranking_by
from helpers.studies import Made, write_study
from metasearch.data.records import Candidate, Question
from metasearch.evaluation.report.sections.languages import NONE, bias_table
from metasearch.evaluation.study.bias import figures_of_arm, measure_ranking_bias
from metasearch.evaluation.study.read import read_study

ARMS = {"zero-shot": Made(1.0, 0.0), "biased": Made(1.0, 4.0)}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bias") / "study"
    return read_study([write_study(folder, ARMS, folds=(0, 1, 2), seeds=(0, 1), questions=12, distractors=20)])


def bias_of(study, label):
    """Return mean and deviation of both figures of an arm, and the number of folds."""
    return figures_of_arm(study, study.arm(label), measure_ranking_bias)


def bias_by_cell(study):
    cells = study.of(study.arm("biased"))
    return {(each.fold, each.seed): measure_ranking_bias(each.questions.ranking).bias for each in cells}


def test_an_encoder_that_prefers_its_language_is_told_from_one_that_does_not(study):
    neutral, biased = (bias_of(study, label)[0][0] for label in ARMS)
    assert abs(neutral) < 0.1
    assert biased > 0.8


def test_seeds_are_averaged_within_a_fold_and_then_folds(study):
    figures = bias_by_cell(study)
    folds = [(figures[fold, 0] + figures[fold, 1]) / 2 for fold in (0, 1, 2)]
    (mean, _), (spread, _), count = bias_of(study, "biased")
    assert mean == pytest.approx(sum(folds) / 3)
    assert spread == pytest.approx(math.sqrt(sum((x - sum(folds) / 3) ** 2 for x in folds) / (3 - 1)))
    assert count == 3


def test_a_fold_with_more_seeds_weighs_as_much_as_the_others(tmp_path):
    folder = write_study(tmp_path / "study", ARMS, (0, 1), (0, 1), unfinished=("biased/fold-1-seed-1",))
    study = read_study([folder])
    a, b, c = bias_by_cell(study).values()
    assert bias_of(study, "biased")[0][0] == pytest.approx(((a + b) / 2 + c) / 2)


def test_a_ranking_by_hand():
    """One Arabic question, answered by ar0 and de0; the order is de1, ar1, ar0, de2, ar2, de0."""
    pool = [Candidate(f"{x}{i}", x, f"{x}{i}", f"{i}", (f"{i}",)) for x in ("ar", "de") for i in range(3)]
    scores = np.array([[4, 5, 2, 1, 6, 3]], dtype=np.float32)
    found = measure_ranking_bias(ranking_by(scores, [Question("0", "ar", "?", "0")], pool), 3)
    # One hit, ar0 on rank 3: in either language with 1/2, as are two of the others, two of each language.
    expected = (1 / 2 + 2 * 2 / 4) / 3
    # Observed are ar1 and ar0; with one hit and two others, all three could have been Arabic.
    assert found.bias == pytest.approx((2 / 3 - expected) / ((1 + 2) / 3 - expected))


def test_the_first_table_has_a_line_of_figures_for_each_arm(study):
    table = bias_table(study)
    assert [line.heads for line in table.lines] == [("zero-shot",), ("biased",)]
    means, spreads, _ = bias_of(study, "biased")
    assert [cell.value for cell in table.lines[1].cells] == means.tolist()
    assert [cell.spread for cell in table.lines[1].cells] == spreads.tolist()
    assert "± is the sample standard deviation over folds." in table.notes
    assert len(table.columns) == len(table.lines[0].cells)


def test_what_is_not_defined_is_a_dash_and_never_nan(tmp_path):
    study = read_study([write_study(tmp_path / "study", ARMS, (0, 1), questions=3, distractors=0)])
    table = bias_table(study)
    assert table.lines[0].cells[0].text == NONE
    assert not any("nan" in table.shown(cell) for line in table.lines for cell in line.cells)
