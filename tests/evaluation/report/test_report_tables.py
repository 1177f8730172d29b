"""Tables of a report, from scores that a reader can redo by hand."""

from statistics import stdev

import pytest

from helpers.tables import SELECTION, places, shown, study_of
from metasearch.evaluation.report.main_table import main_table, over_languages


def test_seeds_are_averaged_before_folds():
    found = study_of(
        {
            ("maml", "trans", 0, 1): {"ar": 0.2, "de": 0.4},
            ("maml", "trans", 0, 2): {"ar": 0.4, "de": 0.4},
            ("maml", "trans", 1, 1): {"ar": 0.6, "de": 0.8},
        }
    )
    folds = [((0.2 + 0.4) / 2 + (0.4 + 0.4) / 2) / 2, (0.6 + 0.8) / 2]
    mean = over_languages(found, found.arms[0], SELECTION)
    assert mean.mean == pytest.approx(sum(folds) / 2)
    assert mean.sd == pytest.approx(stdev(folds))
    table = main_table(found, SELECTION)
    assert shown(table, "maml", "trans") == ["45.00", "60.00", f"52.50 ± {100 * stdev(folds):.2f}"]
    assert table.notes[0].startswith("Mean over seeds (1, 2), then over folds (0, 1); ±: sample standard deviation")
    assert "maml has fewer than 2 seeds: 1 on fold 1." in table.notes


def test_with_one_fold_the_spread_is_over_seeds_and_one_run_has_none():
    found = study_of({("maml", "trans", 3, seed): {"ar": 0.1 * seed} for seed in (1, 2, 3)})
    assert shown(main_table(found, SELECTION), "maml", "trans") == ["20.00", "20.00 ± 10.00"]
    table = main_table(study_of({("maml", "trans", 0, 0): {"ar": 0.1}}), SELECTION)
    assert shown(table, "maml", "trans") == ["10.00", "10.00"]


def test_best_and_second_of_each_column_are_marked_and_what_prints_equal_shares_a_place():
    found = study_of(
        {
            ("zero-shot", None, 0, 0): {"ar": 0.50001, "de": 0.1},
            ("maml", "trans", 0, 0): {"ar": 0.50004, "de": 0.3},
            ("reptile", "trans", 0, 0): {"ar": 0.4, "de": 0.2},
        }
    )
    table = main_table(found, SELECTION)
    assert places(table, "ar") == ["best", "best", "second"]
    assert places(table, "de") == ["", "best", "second"]


def test_a_learner_that_lacks_folds_is_named_and_ranked_with_none():
    scores = {("zero-shot", None, fold, 0): {"ar": 0.1 + 0.1 * fold} for fold in range(5)}
    scores |= {("maml", "trans", fold, 0): {"ar": 0.9} for fold in (0, 1, 4)}
    scores |= {("reptile", "trans", fold, 0): {"ar": 0.2} for fold in range(5)}
    table = main_table(study_of(scores), SELECTION)
    assert places(table, "mean") == ["best", "", "second"]
    assert any(note == "maml has 3 of 5 folds (not 2, 3), so it is not ranked." for note in table.notes)


def test_learners_stand_as_in_a_paper_zero_shot_first_then_each_by_its_modes():
    modes = ("mixt", "mono-bi-multi", "mono-bi", "trans", "bi-multi")
    scores = {("maml", mode, 0, 0): {"ar": 0.1} for mode in modes}
    scores |= {("fine-tune", "trans", 0, 0): {"ar": 0.1}, ("zero-shot", None, 0, 0): {"ar": 0.1}}
    table = main_table(study_of(scores), SELECTION)
    expected = [("maml", mode) for mode in ("bi-multi", "mono-bi", "mono-bi-multi", "mixt", "trans")]
    assert [line.heads for line in table.lines] == [("zero-shot", "–"), *expected, ("fine-tune", "trans")]
    assert [line.rule for line in table.lines] == [False, True, False, False, False, False, True]
