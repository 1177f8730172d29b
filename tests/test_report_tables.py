"""Tables of a report, from scores that a reader can redo by hand."""

from pathlib import Path
from statistics import stdev

import pytest

from metasearch.reports.facts import duration, fact_table, run_table
from metasearch.reports.main_table import (
    MANY,
    fold_table,
    group_table,
    main_table,
    ordered,
    placed,
    pool_table,
    seed_table,
)
from metasearch.reports.matrix import matrix_tables
from metasearch.reports.means import What, over_languages
from metasearch.reports.modes import mode_table
from metasearch.reports.table import Cell, Table
from metasearch.reports.verdict import difference, verdict
from metasearch.results.arms import Arm, labelled
from metasearch.results.compare import Compared, Comparison
from metasearch.results.study import Run, Scored, Study
from metasearch.statistics.bootstrap import Interval
from metasearch.statistics.paired import PairedTest
from metasearch.statistics.summary import Summary

WHAT = What("map@20", "multilingual")


def study_of(scores, missing=(), **extra):
    """Make a study of `(learner, mode, fold, seed) → language → value`, in the pool of all languages."""
    rows = {
        key: [row_of(WHAT, language, "all", value) for language, value in values.items()]
        for key, values in scores.items()
    }
    return study_of_rows(rows, missing, **extra)


def row_of(what, language, candidates, value):
    """Make a row of results."""
    named = {"measure": what.measure, "pool": what.pool, "split": what.split}
    return {**named, "language": language, "candidates": candidates, "value": value, "encoder": "tiny", "versions": {}}


def study_of_rows(rows, missing=(), facts=None):
    """Make a study of `(learner, mode, fold, seed) → rows`."""
    ways = list(dict.fromkeys(key[:2] for key in rows))
    arms = dict(zip(ways, labelled([Arm(learner, mode, None, "tiny") for learner, mode in ways]), strict=True))
    scored = []
    for (learner, mode, fold, seed), own in rows.items():
        config = {} if mode is None else {"recipe": {"learner": learner}, "precision": "fp32"}
        run = Run(Path(f"{learner}-{mode}-{fold}-{seed}"), "study", config, tuple(own), facts or {})
        scored.append(Scored(arms[learner, mode], fold, seed, run, tuple(own)))
    runs = tuple(each.run for each in scored)
    return Study("study", "demo", "4e8f", {}, tuple(arms.values()), tuple(scored), runs, tuple(missing))


def shown(table, *heads):
    """Return the cells of a line as they are shown."""
    (line,) = [line for line in table.lines if line.heads == heads]
    return [table.shown(cell) for cell in line.cells]


def places(table, column):
    return [line.cells[table.columns.index(column)].place for line in table.lines]


def test_seeds_are_averaged_before_folds():
    found = study_of(
        {
            ("maml", "trans", 0, 1): {"ar": 0.2, "de": 0.4},
            ("maml", "trans", 0, 2): {"ar": 0.4, "de": 0.4},
            ("maml", "trans", 1, 1): {"ar": 0.6, "de": 0.8},
        }
    )
    folds = [((0.2 + 0.4) / 2 + (0.4 + 0.4) / 2) / 2, (0.6 + 0.8) / 2]
    mean = over_languages(found, found.arms[0], WHAT)
    assert mean.mean == pytest.approx(sum(folds) / 2)
    assert mean.sd == pytest.approx(stdev(folds))
    table = main_table(found, WHAT)
    assert shown(table, "maml", "trans") == ["45.00", "60.00", f"52.50 ± {100 * stdev(folds):.2f}"]
    assert table.notes[0] == "Mean ± sample standard deviation over 2 folds (the seeds of a fold averaged first)."
    assert "maml has fewer than 2 seeds: 1 on fold 1." in table.notes


def test_with_one_fold_the_spread_is_over_seeds():
    found = study_of({("maml", "trans", 3, seed): {"ar": 0.1 * seed} for seed in (1, 2, 3)})
    assert shown(main_table(found, WHAT), "maml", "trans") == ["20.00", "20.00 ± 10.00"]
    assert main_table(found, WHAT).notes == ("Mean ± sample standard deviation over 3 seeds on fold 3.",)


def test_one_run_has_no_spread_and_the_notes_say_so():
    table = main_table(study_of({("maml", "trans", 0, 0): {"ar": 0.1}}), WHAT)
    assert shown(table, "maml", "trans") == ["10.00", "10.00"]
    assert table.notes == ("One fold (0) and one seed (0): nothing is said of the spread.",)


def test_best_and_second_of_each_column_are_marked_and_what_prints_equal_shares_a_place():
    found = study_of(
        {
            ("zero-shot", None, 0, 0): {"ar": 0.50001, "de": 0.1},
            ("maml", "trans", 0, 0): {"ar": 0.50004, "de": 0.3},
            ("reptile", "trans", 0, 0): {"ar": 0.4, "de": 0.2},
        }
    )
    table = main_table(found, WHAT)
    assert places(table, "ar") == ["best", "best", "second"]
    assert places(table, "de") == ["", "best", "second"]


def test_nothing_is_best_alone_or_where_all_are_equal():
    assert [cell.place for cell in placed([Cell(0.5)], [True])] == [""]
    assert [cell.place for cell in placed([Cell(0.5), Cell(0.5)], [True, True])] == ["", ""]
    assert [cell.place for cell in placed([Cell(0.5), Cell()], [True, True])] == ["", ""]


def test_a_learner_that_lacks_folds_is_named_and_ranked_with_none():
    scores = {("zero-shot", None, fold, 0): {"ar": 0.1 + 0.1 * fold} for fold in range(5)}
    scores |= {("maml", "trans", fold, 0): {"ar": 0.9} for fold in (0, 1, 4)}
    scores |= {("reptile", "trans", fold, 0): {"ar": 0.2} for fold in range(5)}
    table = main_table(study_of(scores), WHAT)
    assert places(table, "mean") == ["best", "", "second"]
    assert any(note.startswith("maml has 3 of 5 folds (not 2, 3).") for note in table.notes)


def test_the_spread_over_the_seeds_of_an_only_fold_stands_not_among_spreads_over_folds():
    scores = {("zero-shot", None, fold, 0): {"ar": 0.1 + 0.1 * fold} for fold in (0, 1)}
    scores |= {("maml", "trans", 0, seed): {"ar": 0.1 * seed} for seed in (1, 3)}
    table = main_table(study_of(scores), WHAT)
    assert shown(table, "zero-shot", "–") == ["15.00", f"15.00 ± {100 * stdev([0.1, 0.2]):.2f}"]
    assert shown(table, "maml", "trans") == ["20.00", "20.00"]


def test_groups_of_languages_have_the_mean_of_those_that_are_there():
    rows = {}
    for (learner, mode), seeds in {("zero-shot", None): (0.1,), ("maml", "trans"): (0.2, 0.4)}.items():
        for seed, value in enumerate(seeds):
            every = row_of(WHAT, "ar", "all", value), row_of(WHAT, "de", "all", 0.9)
            group = {**row_of(WHAT, "group 36", "", value), "found": 1, "listed": 36}
            rows[learner, mode, 0, seed] = [*every, group]
    found = study_of_rows(rows)
    table = group_table(found, WHAT)
    assert table.columns == ("36",)
    assert shown(table, "maml", "trans") == [f"{100 * (0.2 + 0.4) / 2:.2f}"]
    assert "(36: 1 of 36)" in table.notes[0]
    assert main_table(found, WHAT).columns == ("ar", "de", "mean")
    assert group_table(study_of({("maml", "trans", 0, 0): {"ar": 0.1}}), WHAT) is None


@pytest.mark.parametrize("value", [-0.00001, -0.0, 0.00001])
def test_what_rounds_to_zero_has_no_sign(value):
    assert Table("", "", (), (), ()).shown(Cell(value, spread=0.0)) == "0.00 ± 0.00"


def test_marks_stand_behind_the_means_only():
    found = study_of({("zero-shot", None, 0, 0): {"ar": 0.1}, ("maml", "trans", 0, 0): {"ar": 0.2}})
    table = main_table(found, WHAT, marks={found.arms[1]: "*†"})
    assert [[cell.mark for cell in line.cells] for line in table.lines] == [["", ""], ["", "*†"]]


def test_learners_stand_as_in_a_paper_zero_shot_first_then_each_by_its_modes():
    modes = ("mixt", "mono-bi-multi", "mono-bi", "trans", "bi-multi")
    scores = {("maml", mode, 0, 0): {"ar": 0.1} for mode in modes}
    scores |= {("fine-tune", "trans", 0, 0): {"ar": 0.1}, ("zero-shot", None, 0, 0): {"ar": 0.1}}
    table = main_table(study_of(scores), WHAT)
    assert [line.heads for line in table.lines] == [
        ("zero-shot", "–"),
        ("maml", "bi-multi"),
        ("maml", "mono-bi"),
        ("maml", "mono-bi-multi"),
        ("maml", "mixt"),
        ("maml", "trans"),
        ("fine-tune", "trans"),
    ]
    assert [line.rule for line in table.lines] == [False, True, False, False, False, False, True]


def test_a_column_for_modes_is_left_out_where_nothing_was_trained():
    assert main_table(study_of({("zero-shot", None, 0, 0): {"ar": 0.1}}), WHAT).heads == ("Learner",)


def test_with_many_languages_each_has_a_line():
    languages = [f"x{i:02}" for i in range(MANY + 1)]
    found = study_of(
        {
            ("zero-shot", None, 0, 0): dict.fromkeys(languages, 0.1),
            ("maml", "trans", 0, 0): dict.fromkeys(languages, 0.2),
        }
    )
    table = main_table(found, WHAT)
    assert table.columns == ("zero-shot", "maml trans")
    assert [line.heads for line in table.lines] == [(name,) for name in (*languages, "mean")]
    assert [cell.place for cell in table.lines[0].cells] == ["second", "best"]


def test_modes_are_columns_and_an_encoder_as_it_is_stands_in_the_notes():
    found = study_of(
        {
            ("zero-shot", None, 0, 0): {"ar": 0.5},
            ("maml", "trans", 0, 0): {"ar": 0.4},
            ("maml", "mono-bi", 0, 0): {"ar": 0.3},
            ("fine-tune", "trans", 0, 0): {"ar": 0.2},
        }
    )
    table = mode_table(found, WHAT)
    assert table.columns == ("mono-bi", "trans")
    assert shown(table, "maml") == ["30.00", "40.00"]
    assert shown(table, "fine-tune") == ["", "20.00"]
    assert places(table, "trans") == ["best", "second"]
    assert table.notes[-1] == "zero-shot has no mode: 50.00."


def test_one_mode_is_compared_with_nothing():
    assert mode_table(study_of({("maml", "trans", 0, 0): {"ar": 0.4}}), WHAT) is None


def test_folds_and_seeds_have_tables_of_their_own():
    found = study_of(
        {("maml", "trans", fold, seed): {"ar": 0.1 * fold + 0.02 * seed} for fold in (1, 2) for seed in (0, 1)}
    )
    folds, seeds = fold_table(found, WHAT), seed_table(found, WHAT)
    assert folds.columns == ("fold 1", "fold 2", "mean")
    assert shown(folds, "maml", "trans") == ["11.00", "21.00", f"16.00 ± {stdev([11, 21]):.2f}"]
    assert seeds.columns == ("seed 0", "seed 1", "mean")
    assert shown(seeds, "maml", "trans") == ["15.00", "17.00", f"16.00 ± {stdev([15, 17]):.2f}"]


def test_a_seed_that_lacks_a_fold_has_no_value_and_its_learner_no_place():
    folds_and_seeds = [(fold, seed) for fold in (0, 1) for seed in (0, 1, 2)]
    scores = {("maml", "trans", *at): {"ar": 0.9} for at in folds_and_seeds if at != (1, 1)}
    scores |= {("reptile", "trans", *at): {"ar": 0.1} for at in folds_and_seeds}
    scores |= {("meta-sgd", "trans", *at): {"ar": 0.2} for at in folds_and_seeds}
    table = seed_table(study_of(scores), WHAT)
    assert shown(table, "maml", "trans") == ["90.00", "", "90.00", "90.00 ± 0.00"]
    assert places(table, "mean") == ["", "second", "best"]


def test_one_fold_or_one_seed_needs_no_table():
    found = study_of({("maml", "trans", 0, 0): {"ar": 0.1}})
    assert fold_table(found, WHAT) is None
    assert seed_table(found, WHAT) is None
    assert pool_table(found, WHAT) is None


@pytest.fixture
def searched():
    """Return a study with the pools of retrieval."""
    multi, mono, bi = (What("map@20", pool) for pool in ("multilingual", "monolingual", "bilingual"))
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
    table = pool_table(searched, WHAT)
    assert table.columns == ("multilingual", "monolingual", "bilingual")
    assert shown(table, "zero-shot") == [f"{100 * (0.2 + 0.1) / 2:.2f}", "70.00", "35.00"]


def test_a_matrix_of_each_arm_has_a_key_of_its_own():
    what = What("map@20", "monolingual")
    rows = {(learner, "trans", 0, 0): [row_of(what, "ar", "ar", 0.1)] for learner in ("a b", "a-b")}
    assert [table.key for table in matrix_tables(study_of_rows(rows), "map@20")] == ["matrix-1-a-b", "matrix-2-a-b"]


def test_facts_say_what_was_run_and_what_is_missing():
    facts = {"seconds": 100.0, "peak_memory_mib": 600.0, "processor": "a <b>", "cores": 2, "steps": 4}
    scores = {("maml", "trans", fold, 0): [row_of(WHAT, "ar", "all", 0.1)] for fold in (0, 1)}
    found = study_of_rows(scores, missing=["cell x is not finished"], facts=facts)
    table = fact_table(found)
    said = {line.heads[0]: line.cells[0].text for line in table.lines}
    assert said["Folds"] == "0, 1"
    assert said["Processor"] == "a <b>"
    assert said["Data fingerprint"] == "4e8f"
    assert said["Time of all runs together"] == "3 min 20 s"
    assert table.notes == ("Missing: cell x is not finished.",)
    took = run_table(found)
    assert took.columns == ("Runs", "Outer steps", "Seconds", "Peak memory, MiB")
    assert shown(took, "maml", "trans") == ["2", "4", "100.0", "600.0"]
    assert run_table(study_of({key: {"ar": 0.1} for key in scores})) is None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(8.4, "8 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (3600 * 2 + 60 * 18 + 5, "2 h 18 min")],
)
def test_a_time_reads_well(seconds, expected):
    assert duration(seconds) == expected


def compared(arm, low, high, value=0.2):
    """Compare an arm of mean `value` with a baseline of mean 0.3."""
    mean, zero = Summary(value, None, 1, "folds"), Summary(0.3, None, 1, "folds")
    test = PairedTest(14, value - 0.3, 0.1, -3.7, 0.001, low, high, -1.0)
    return Compared(arm, (0, 1), (0,), zero, mean, Interval(low, high), test, 0.0021, {}, 0.95)


def words(found, *each):
    comparison = Comparison("study", "demo", found.arms[0], "map@20", "multilingual", 0.95, 1000, 0, each, ())
    return " ".join(verdict(found, WHAT, comparison))


@pytest.fixture
def two_folds():
    learners = {("zero-shot", None): 0.3, ("fine-tune", "trans"): 0.2}
    return study_of({(*way, fold, 0): {"ar": value} for way, value in learners.items() for fold in (0, 1)})


def test_the_verdict_names_the_winner_and_says_that_fine_tuning_is_weaker(two_folds):
    said = words(two_folds, compared(two_folds.arms[1], -0.15, -0.05))
    assert said.startswith("zero-shot has the highest mean map@20 on the test data: 30.00, before fine-tune 20.00")
    assert "−15.00 to −5.00, without 0: significant" in said
    assert "fine-tune is weaker than zero-shot by 10.00, as plain fine-tuning is in the MAML-Align paper." in said


def test_the_verdict_says_when_it_cannot_be_told(two_folds):
    said = words(two_folds, compared(two_folds.arms[1], -0.25, 0.05))
    assert "with 0 in it: not significant" in said
    assert "Whether fine-tune is weaker than zero-shot, as in the MAML-Align paper, cannot be told from this." in said


def test_the_verdict_says_when_fine_tuning_is_better(two_folds):
    said = words(two_folds, compared(two_folds.arms[1], 0.05, 0.15, value=0.4))
    assert "fine-tune is better than zero-shot by 10.00; in the MAML-Align paper plain fine-tuning is weaker." in said


def test_an_undefined_interval_claims_nothing(two_folds):
    assert "significant" not in difference(compared(two_folds.arms[1], None, None), two_folds.arms[0])


def test_the_verdict_on_one_fold_says_how_far_it_goes():
    found = study_of({("zero-shot", None, 0, 0): {"ar": 0.3}})
    assert verdict(found, WHAT, None) == (
        "zero-shot has a mean map@20 of 30.00 (× 100); there is nothing to rank it with.",
        "This is one fold: nothing is said of how it would be with another cut of the data.",
    )


def test_the_verdict_on_one_seed_says_how_far_it_goes(two_folds):
    assert "This is one seed: nothing is said of how it would be if training were repeated." in words(two_folds)


def test_the_verdict_says_that_the_highest_of_several_was_chosen_on_the_same_data(two_folds):
    one = compared(two_folds.arms[1], -0.15, -0.05)
    chosen = "It is the highest of 2 learners compared on the same test data; its interval is not corrected for that."
    assert chosen not in words(two_folds, one)
    assert chosen in words(two_folds, one, one)


def test_nobody_wins_where_no_learner_has_every_fold():
    found = study_of({("zero-shot", None, 0, 0): {"ar": 0.3}, ("maml", "trans", 1, 0): {"ar": 0.4}})
    assert verdict(found, WHAT, None)[0].startswith("No learner has scores")
    assert ordered(found)[0].zero_shot
