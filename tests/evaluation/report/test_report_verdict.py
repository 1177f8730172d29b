"""What a report says beside its main table: the language matrix, the pools, the facts, and the verdict in words."""

import pytest

from helpers.tables import SELECTION, row_of, shown, study_of, study_of_rows
from metasearch.evaluation.report.comparison import verdict
from metasearch.evaluation.report.main_table import ordered
from metasearch.evaluation.report.section import Inputs
from metasearch.evaluation.report.sections.compared import section
from metasearch.evaluation.report.sections.languages import matrix_tables
from metasearch.evaluation.report.sections.run_facts import fact_table, run_table
from metasearch.evaluation.report.sections.scores import pool_table
from metasearch.evaluation.statistics.folds import TrainingInterval
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.statistics.paired import Summary
from metasearch.evaluation.study.compare import ArmComparison, Comparison
from metasearch.evaluation.study.study import Arm, ScoreSelection

ZERO_SHOT = Arm("zero-shot", None, None, "tiny", label="zero-shot")


@pytest.fixture
def searched():
    multi, mono, bi = (ScoreSelection("map@20", pool) for pool in ("multilingual", "monolingual", "bilingual"))
    rows = [row_of(multi, "de", "all", 0.2), row_of(multi, "ar", "all", 0.1)]
    rows += [row_of(mono, "de", "de", 0.8), row_of(mono, "ar", "ar", 0.6)]
    rows += [row_of(bi, "de", "ar", 0.3), row_of(bi, "ar", "de", 0.4)]
    return study_of_rows({("zero-shot", None, 0, 0): rows})


def test_the_language_matrix_has_questions_as_lines_and_the_monolingual_pool_on_its_diagonal(searched):
    (table,) = matrix_tables(searched, "map@20")
    assert table.columns == ("de", "ar")
    assert shown(table, "de") == ["80.00", "30.00"]
    assert shown(table, "ar") == ["40.00", "60.00"]
    assert matrix_tables(study_of({("zero-shot", None, 0, 0): {"ar": 0.1}}), "map@20") == []


def test_pools_have_the_mean_over_languages_of_each(searched):
    table = pool_table(searched, SELECTION)
    assert table.columns == ("multilingual", "monolingual", "bilingual")
    assert shown(table, "zero-shot") == [f"{100 * (0.2 + 0.1) / 2:.2f}", "70.00", "35.00"]


def test_facts_say_what_was_run_and_what_is_missing():
    facts = {"seconds": 100.0, "peak_memory_mib": 600.0, "processor": "a <b>", "cores": 2, "steps": 4}
    scores = {("maml", "trans", fold, 0): [row_of(SELECTION, "ar", "all", 0.1)] for fold in (0, 1)}
    found = study_of_rows(scores, missing=["run x is not finished"], facts=facts)
    table = fact_table(found)
    said = {line.heads[0]: line.cells[0].text for line in table.lines}
    assert said["Runs"] == "2"
    assert said["Processor"] == "a <b>"
    assert said["Time of all runs together"] == "3 min 20 s"
    assert table.notes == ("Missing: run x is not finished.",)
    took = run_table(found)
    assert took.columns == ("Runs", "Outer steps", "Seconds", "Peak memory, MiB")
    assert shown(took, "maml", "trans") == ["2", "4", "100.0", "600.0"]
    assert run_table(study_of({key: {"ar": 0.1} for key in scores})) is None


def compared(arm, low, high, value=0.2, alone=False):
    mean, zero = Summary(value, None, 1, "folds"), Summary(0.3, None, 1, "folds")
    training = None if low is None or alone else TrainingInterval(low, high, 0.001, 0.01, 1, "folds")
    models = Interval(low, high) if low is None or alone else Interval(low + 0.01, high - 0.01)
    rest = {"by_fold": {}, "languages": {}, "level": 0.95}
    holm = None if training is None else 0.0021
    return ArmComparison(models, training, arm, ZERO_SHOT, (0, 1), (0,), zero, mean, holm, 20, **rest)


def words(found, *each):
    comparison = Comparison("study", "demo", found.arms[0], "map@20", "multilingual", 0.95, each, ())
    return " ".join(verdict(found, SELECTION, comparison))


@pytest.fixture
def two_folds():
    learners = {("zero-shot", None): 0.3, ("fine-tune", "trans"): 0.2}
    return study_of({(*way, fold, 0): {"ar": value} for way, value in learners.items() for fold in (0, 1)})


def test_the_verdict_ranks_the_learners_and_says_whether_the_difference_is_significant(two_folds):
    said = words(two_folds, compared(two_folds.arms[1], -0.15, -0.05))
    assert said.startswith("Mean map@20 on the test data (× 100), highest first: zero-shot 30.00, fine-tune 20.00.")
    assert "interval over other folds, seeds and questions −15.00 to −5.00, significant; Holm-adjusted p = " in said
    said = words(two_folds, compared(two_folds.arms[1], -0.25, 0.05))
    assert "−25.00 to +5.00, not significant" in said


def test_the_chart_has_a_hollow_marker_where_the_interval_holds_0_and_the_values_in_words(two_folds):
    each = [compared(two_folds.arms[1], low, high) for low, high in ((-0.15, -0.05), (-0.25, 0.05), (None, None))]
    comparison = Comparison("study", "demo", two_folds.arms[0], "map@20", "multilingual", 0.95, (*each,), ())
    (chart,) = section(Inputs(two_folds, SELECTION, comparison)).charts
    assert [[i and not i.excludes(0) for i in row.intervals] for row in chart.rows] == [
        [False, False],
        [True, True],
        [None, True],
    ]
    assert [row.text for row in chart.rows] == ["−10.00 [−15.00, −5.00]*†", "−10.00 [−25.00, 5.00]†", "−10.00"]
    assert (chart.series, chart.reference) == (("retraining", "fixed models"), "zero-shot")


def test_without_an_interval_over_training_the_verdict_and_the_mark_are_of_these_models_and_say_so(two_folds):
    found = compared(two_folds.arms[1], -0.15, -0.05, alone=True)
    said = words(two_folds, found)
    assert found.mark == "°"
    assert "95% interval for fixed models −15.00 to −5.00, significant" in said
    assert "the effect of retraining is not known" in said


def test_the_verdict_on_one_fold_says_how_far_it_goes_and_nobody_is_ranked_without_every_fold():
    found = study_of({("zero-shot", None, 0, 0): {"ar": 0.3}})
    assert verdict(found, SELECTION, None) == (
        "Mean map@20 on the test data (× 100), highest first: zero-shot 30.00.",
        "There is one fold: variation between folds is not known.",
    )
    found = study_of({("zero-shot", None, 0, 0): {"ar": 0.3}, ("maml", "trans", 1, 0): {"ar": 0.4}})
    assert verdict(found, SELECTION, None)[0].startswith("No learner has scores")
    assert ordered(found)[0].zero_shot
