"""The section on single questions shows the right questions with the ranks of their answers."""

import pytest

from helpers.studies import write_study
from metasearch.evaluation.report.sections.questions import question_table
from metasearch.evaluation.study.read import read_study

LANGUAGES = ("ar", "de")
MANY = 1000


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return zero-shot and maml on two folds with two seeds; maml lacks a cell of each seed on fold 1."""
    arms = {"zero-shot": 0.5, "maml": 2.0}
    folder = tmp_path_factory.mktemp("questions") / "study"
    return read_study([write_study(folder, arms, folds=(0, 1), seeds=(1, 2), languages=LANGUAGES)])


@pytest.fixture(scope="module")
def table(study):
    return question_table(study, study.arm("zero-shot"), study.arm("maml"), "map@20", MANY)


def precision(study, label, fold, unit, language):
    """Return the mean AP@20 over seeds of a question, from the kept columns."""
    cell = "multilingual", language, "all"
    found = [each.questions for each in study.of(study.arm(label)) if each.fold == fold]
    values = [kept.columns["map@20", *cell][kept.units[cell].index(unit)] for kept in found]
    return sum(values) / 2


def test_each_question_has_a_line_in_the_language_with_its_largest_difference(study, table):
    expected = {}
    for fold in (0, 1):
        for i in range(8):
            unit = f"test{fold}-article-{i}"
            both = [[precision(study, label, fold, unit, x) for label in ("zero-shot", "maml")] for x in LANGUAGES]
            expected[unit] = max(both, key=lambda values: abs(values[1] - values[0]))
    assert len(table.lines) == len(expected) == 2 * 8
    for line in table.lines:
        values = [cell.value for cell in line.cells[1:3]]
        assert values == pytest.approx(expected[line.cells[0].text.split()[-1]])
    sizes = [abs(line.cells[2].value - line.cells[1].value) for line in table.lines]
    assert sizes == sorted(sizes, reverse=True)


def test_ranks_and_first_candidates_are_those_of_the_first_seed(study, table):
    line = table.lines[0]
    kept = next(s for s in study.of(study.arm("maml")) if (s.fold, s.seed) == (int(line.heads[1]), 1)).questions
    row = [(q.text, q.language) for q in kept.ranking.questions].index((line.cells[0].text, line.heads[0]))
    own = slice(kept.ranking.offsets[row], kept.ranking.offsets[row + 1])
    assert line.cells[4].text == ", ".join(map(str, kept.ranking.ranks[own]))
    first = kept.ranking.top[row][0]
    assert line.cells[6].text == "✓ " * (first in kept.ranking.relevant[own]) + kept.ranking.candidates[first].text
    assert [cell.text.startswith("✓") for cell in line.cells[5:]] == [
        cell.text.startswith("1,") for cell in line.cells[3:5]
    ]


def test_only_folds_of_both_are_compared_and_ties_have_an_order(tmp_path):
    folder = write_study(tmp_path / "study", {"zero-shot": 50.0, "maml": 50.0}, unfinished=("maml/fold-1-seed-0",))
    first, second = read_study([folder]), read_study([folder])
    table = question_table(first, first.arm("zero-shot"), first.arm("maml"), "map@20")
    assert table == question_table(second, second.arm("zero-shot"), second.arm("maml"), "map@20")
    assert [line.heads[1] for line in table.lines] == ["0"] * 8 + ["2"] * 8


def test_a_task_that_ranks_nothing_has_no_questions(tmp_path):
    study = read_study([write_study(tmp_path / "study", kind="similarity", folds=(0,), questions=5)])
    assert question_table(study, study.arm("zero-shot"), study.arm("maml"), "spearman") is None
