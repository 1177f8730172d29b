"""Language bias on rankings whose bias is known and of kept runs."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.rankings import ranking_by
from helpers.studies import Made, write_study
from metasearch.data.records import Candidate, Question
from metasearch.evaluation.report.sections.languages import NONE, bias_table
from metasearch.evaluation.study import bias as measure
from metasearch.evaluation.study.bias import measure_arm_bias, measure_ranking_bias
from metasearch.evaluation.study.read import read_study


def measured(spoken, rankings, relevant, k, asked, size=None, asks=None):
    """Measure rankings: orders of the whole pool, what is relevant to each, and the language of each question."""
    size = size or max(spoken) + 1
    spoken, orders, asked = np.array(spoken), np.array(rankings), np.array(asked)
    asks = asks or size
    found = [np.sort([list(order).index(c) for c in mine]) for order, mine in zip(orders, relevant, strict=True)]
    hits = np.array([np.sum(places < k) for places in found])
    has = np.array([np.bincount(spoken[order[at]], minlength=size) for order, at in zip(orders, found, strict=True)])
    others = np.bincount(spoken, minlength=size) - has
    pool, every = len(spoken), has.sum(1, keepdims=True)
    parts = {
        "observed": (spoken[orders[:, :k], None] == np.arange(size)).mean(1),
        "expected": measure.expected_shares(hits[:, None], has, others, every, pool, k),
        "greatest": measure.greatest_shares(hits[:, None], has, others, k),
    }
    bias = measure.own_bias(*(shares[np.arange(len(asked)), asked] for shares in parts.values()), asked)
    means = {name: np.stack([shares[asked == x].mean(0) for x in range(asks)]) for name, shares in parts.items()}
    return SimpleNamespace(**means, bias=bias)


# Two languages of four candidates each; 0 and 4 answer every question.
POOL = [0, 0, 0, 0, 1, 1, 1, 1]
OWN_FIRST = [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3]]
ANSWERS = [(0, 4), (0, 4)]


def test_a_top_of_nothing_but_the_own_language_has_bias_1():
    found = measured(POOL, OWN_FIRST, ANSWERS, 3, asked=[0, 1])
    assert found.observed.tolist() == [[3 / 3, 0], [0, 3 / 3]]
    # One hit, of which each language has 1 of 2, and two of the others, of which each has 3 of 6.
    assert found.expected == pytest.approx(np.full((2, 2), (1 * 1 / 2 + 2 * 3 / 6) / 3))
    assert found.greatest == pytest.approx(np.full((2, 2), (1 + 2) / 3))
    assert found.bias == pytest.approx([1, 1])


def test_finding_the_translation_does_not_hide_the_bias():
    """Both answers first, then the own language: the top could not hold more of it with two hits."""
    orders = [[0, 4, 1, 2, 3, 5, 6, 7], [4, 0, 5, 6, 7, 1, 2, 3]]
    found = measured(POOL, orders, ANSWERS, 4, asked=[0, 1])
    assert np.diag(found.observed) == pytest.approx([3 / 4, 3 / 4])
    assert np.diag(found.expected) == pytest.approx([(2 * 1 / 2 + 2 * 3 / 6) / 4] * 2)
    assert np.diag(found.greatest) == pytest.approx([(1 + 2) / 4] * 2)
    assert found.bias == pytest.approx([1, 1])


def test_preferring_one_language_whatever_the_question_is_no_own_language_bias():
    found = measured(POOL, [OWN_FIRST[0]] * 2, ANSWERS, 3, asked=[0, 1])
    assert found.bias == pytest.approx([1, -1])
    assert found.bias.mean() == pytest.approx(0)


def test_all_rankings_together_have_no_bias_at_all():
    """What is expected is exact: an unbiased ranker is one that takes every order equally often."""
    pool, answers = [0, 0, 0, 1, 1, 2], (0, 1, 3)
    orders = list(itertools.permutations(range(len(pool))))
    for k in range(1, len(pool) + 1):
        found = measured(pool, orders, [answers] * len(orders), k, asked=[0] * len(orders), asks=1)
        assert found.observed == pytest.approx(found.expected, abs=1e-12)
        if k < len(pool):
            assert found.bias == pytest.approx([0], abs=1e-12)


@st.composite
def searches(draw):
    """Make a pool of up to three languages and rankings of it, each language with a question."""
    size = draw(st.integers(2, 3))
    spoken = [*range(size), *draw(st.lists(st.integers(0, size - 1), max_size=7))]
    number = len(spoken)
    asked = [*range(size), *draw(st.lists(st.integers(0, size - 1), max_size=3))]
    orders = [draw(st.permutations(range(number))) for _ in asked]
    answers = st.lists(st.integers(0, number - 1), min_size=1, max_size=number, unique=True)
    return spoken, orders, [draw(answers) for _ in asked], draw(st.integers(1, number)), asked


@given(searches())
def test_shares_sum_to_1_and_are_within_what_is_possible(drawn):
    found = measured(*drawn)
    assert found.observed.sum(1) == pytest.approx(1)
    assert found.expected.sum(1) == pytest.approx(1)
    assert (found.observed <= found.greatest + 1e-12).all()
    assert (found.expected <= found.greatest + 1e-12).all()
    assert (found.bias[~np.isnan(found.bias)] <= 1 + 1e-9).all()
    # Where a top leaves nothing to choose there is no excess, so that NaN hides nothing.
    rigid = np.isnan(found.bias)
    assert np.diag(found.observed)[rigid] == pytest.approx(np.diag(found.expected)[rigid])


ARMS = {"zero-shot": Made(1.0, 0.0), "biased": Made(1.0, 4.0)}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bias") / "study"
    return read_study([write_study(folder, ARMS, folds=(0, 1, 2), seeds=(0, 1), questions=12, distractors=20)])


def bias_of(study, label):
    """Return mean and deviation of an arm, and the number of folds."""
    return measure_arm_bias(study, study.arm(label))


def bias_by_cell(study):
    cells = study.of(study.arm("biased"))
    return {(each.fold, each.seed): measure_ranking_bias(each.questions.ranking) for each in cells}


def test_an_encoder_that_prefers_its_language_is_told_from_one_that_does_not(study):
    neutral, biased = (bias_of(study, label)[0] for label in ARMS)
    assert abs(neutral) < 0.1
    assert biased > 0.8


def test_seeds_are_averaged_within_a_fold_and_then_folds(study):
    figures = bias_by_cell(study)
    folds = [(figures[fold, 0] + figures[fold, 1]) / 2 for fold in (0, 1, 2)]
    mean, spread, count = bias_of(study, "biased")
    assert mean == pytest.approx(sum(folds) / 3)
    assert spread == pytest.approx(math.sqrt(sum((x - sum(folds) / 3) ** 2 for x in folds) / (3 - 1)))
    assert count == 3


def test_a_fold_with_more_seeds_weighs_as_much_as_the_others(tmp_path):
    folder = write_study(tmp_path / "study", ARMS, (0, 1), (0, 1), unfinished=("biased/fold-1-seed-1",))
    study = read_study([folder])
    a, b, c = bias_by_cell(study).values()
    assert bias_of(study, "biased")[0] == pytest.approx(((a + b) / 2 + c) / 2)


def test_a_ranking_by_hand():
    """One Arabic question, answered by ar0 and de0; the order is de1, ar1, ar0, de2, ar2, de0."""
    pool = [Candidate(f"{x}{i}", x, f"{x}{i}", f"{i}", (f"{i}",)) for x in ("ar", "de") for i in range(3)]
    scores = np.array([[4, 5, 2, 1, 6, 3]], dtype=np.float32)
    found = measure_ranking_bias(ranking_by(scores, [Question("0", "ar", "?", "0")], pool), 3)
    # One hit, ar0 on rank 3: in either language with 1/2, as are two of the others, two of each language.
    expected = (1 / 2 + 2 * 2 / 4) / 3
    # Observed are ar1 and ar0; with one hit and two others, all three could have been Arabic.
    assert found == pytest.approx((2 / 3 - expected) / ((1 + 2) / 3 - expected))


def test_a_language_without_candidates_has_no_bias():
    pool = [Candidate(f"{x}{i}", x, f"{x}{i}", f"{i}", (f"{i}",)) for x in ("ar", "de") for i in range(3)]
    scores = np.array([[4, 5, 2, 1, 6, 3]] * 2, dtype=np.float32)
    both = ranking_by(scores, [Question("0", x, "?", "0") for x in ("ar", "fr")], pool)
    one = ranking_by(scores[:1], [Question("0", "ar", "?", "0")], pool)
    assert measure_ranking_bias(both, 3) == pytest.approx(measure_ranking_bias(one, 3))


def test_the_first_table_has_a_line_of_figures_for_each_arm(study):
    table = bias_table(study)
    assert [line.heads for line in table.lines] == [("zero-shot",), ("biased",)]
    (cell,) = table.lines[1].cells
    assert (cell.value, cell.spread, 3) == bias_of(study, "biased")
    assert "± is the sample standard deviation over folds." in table.notes
    assert len(table.columns) == len(table.lines[0].cells)


def test_what_is_not_defined_is_a_dash_and_never_nan(tmp_path):
    study = read_study([write_study(tmp_path / "study", ARMS, (0, 1), questions=3, distractors=0)])
    table = bias_table(study)
    assert table.lines[0].cells[0].text == NONE
    assert not any("nan" in table.shown(cell) for line in table.lines for cell in line.cells)
