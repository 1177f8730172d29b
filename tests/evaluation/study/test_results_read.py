"""Runs and studies read back: what is there, what is missing, and what may not be put together."""

import json
import shutil

import pytest

from helpers.studies import VERSIONS, Made, elsewhere, write_run, write_study
from metasearch.config import yaml
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study
from metasearch.runs.folder import write_checksums
from metasearch.runs.per_query_results import query_results_path
from metasearch.runs.rows import read_rows

TINY = {"questions": 3, "distractors": 1, "languages": ("ar", "el")}
MAML = Made(1.5, learner="maml")


def study(folder, arms=None, **more):
    return write_study(folder, arms, **{"folds": (0, 1), **TINY, **more})


def run(path, made=MAML, fold=0, seed=0, **more):
    return write_run(path, made, fold, seed, **{**TINY, **more})


def labels(found):
    return [arm.label for arm in found.arms]


def where(found, label):
    return [(scored.fold, scored.seed) for scored in found.of(found.arm(label))]


def message(kind, *paths, **more):
    with pytest.raises(kind) as caught:
        read_study(paths, **more)
    return str(caught.value)


# What is there.


def test_a_study_has_its_arms_on_all_folds_and_seeds(tmp_path):
    found = read_study([study(tmp_path / "s", seeds=(1, 2))])
    assert (found.name, found.task, found.data, found.versions) == ("s", "demo", "4e8ffb836c3ab809", VERSIONS)
    assert (labels(found), found.folds, found.seeds, found.missing) == (["zero-shot", "maml"], (0, 1), (1, 2), ())
    for label in labels(found):
        assert where(found, label) == [(fold, seed) for fold in (0, 1) for seed in (1, 2)]
    assert (found.measures, found.pools[0], found.languages) == (("map@20", "map"), "multilingual", ("ar", "el"))
    assert found.baseline_of(found.arm("maml")) == found.arm("zero-shot")
    assert len(found.runs) == 2 * 2 * 2


def test_runs_of_similarity_are_read_with_what_was_predicted(tmp_path):
    found = read_study([study(tmp_path / "s", kind="similarity")])
    assert (found.measures, found.pools, found.languages) == (
        ("pearson", "spearman"),
        ("pairs",),
        ("ar-ar", "ar-el", "el-el"),
    )
    assert len(found.scored[0].questions.columns["predicted", "pairs", "ar-el", ""]) == TINY["questions"]


@pytest.mark.parametrize(
    "given", [("s", "s"), ("s", "s/cells/maml/fold-0-seed-0"), ("s/cells/maml/fold-0-seed-0", "s")]
)
def test_a_run_that_is_given_twice_counts_once(tmp_path, given):
    study(tmp_path / "s")
    found = read_study([tmp_path / name for name in given])
    assert sorted(labels(found)) == ["maml", "zero-shot"]
    assert where(found, "maml") == [(0, 0), (1, 0)]
    assert len(found.runs) == 4


def test_the_same_arm_of_two_studies_on_different_folds_is_one_arm(tmp_path):
    found = read_study([study(tmp_path / "a", folds=(0, 1)), study(tmp_path / "b", folds=(2,))])
    assert labels(found) == ["zero-shot", "maml"]
    assert where(found, "maml") == [(0, 0), (1, 0), (2, 0)]
    assert found.name == "a, b"


def test_the_same_arm_of_two_studies_on_the_same_fold_is_two_arms_that_keep_all_their_folds(tmp_path):
    found = read_study([study(tmp_path / "a", folds=(0, 1)), study(tmp_path / "b", folds=(1, 2))])
    assert labels(found) == ["zero-shot", "maml in a", "maml in b"]
    assert where(found, "maml in a") == [(0, 0), (1, 0)]
    assert where(found, "maml in b") == [(1, 0), (2, 0)]
    assert where(found, "zero-shot") == [(0, 0), (1, 0), (2, 0)]


def test_a_distillation_is_read_stage_by_stage_without_their_own_dev_scores(tmp_path):
    path = run(tmp_path / "d", Made(1.0, learner="zero-shot"))
    origin = query_results_path(path, "demo", "zero-shot", "test")
    rows = read_rows(path / "results.jsonl")
    stages = []
    for number, label in enumerate(("assistant, before", "1 assistant", "4 contrast")):
        stages += [
            row | {"learner": label, "recipe": "compress", "stage": number} for row in rows if row["split"] == "test"
        ]
        stages.append({"task": "dev", "learner": label, "split": "dev", "measure": "cosine", "value": 0.5})
        shutil.copy(origin, query_results_path(path, "demo", label, "test"))
    (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in stages))
    config = {"recipe": {"recipe": "compress", "stages": {"contrast": {"learner": "mcl"}}}, "teacher": "tiny"}
    (path / "config.yaml").write_text(yaml.dump({"data_fingerprint": "", "config": config}))
    found = read_study([path])
    assert (found.task, labels(found)) == ("demo", ["assistant, before", "1 assistant", "4 contrast"])
    assert all(scored.questions.ranking is not None for scored in found.scored)
    assert [arm and arm.label for arm in map(found.baseline_of, found.arms)] == [None, *["assistant, before"] * 2]


def test_one_of_several_tasks_is_chosen(tmp_path):
    paths = [run(tmp_path / "a"), run(tmp_path / "b", task="demo-sts", data="f00", kind="similarity")]
    assert "several tasks: demo, demo-sts; choose one with --task" in message(ConfigError, *paths)
    assert read_study(paths, task="demo-sts").measures == ("pearson", "spearman")
    assert "no scores on task 'dmo'; there are some on demo, demo-sts" in message(ConfigError, *paths, task="dmo")


# What is missing.


def test_cells_that_are_missing_or_not_finished_are_named_and_the_others_read(tmp_path):
    folder = study(tmp_path / "s", unfinished=["maml/fold-0-seed-0"])
    (folder / "cells" / "maml" / "fold-1-seed-0" / "report.md").unlink()
    found = read_study([folder])
    assert labels(found) == ["zero-shot"]
    assert found.missing == tuple(f"{folder}: run maml/fold-{fold}-seed-0 is not finished" for fold in (0, 1))


def test_a_study_of_which_nothing_is_finished_says_so(tmp_path):
    names = ["maml/fold-0-seed-0", "maml/fold-1-seed-0"]
    folder = study(tmp_path / "s", {"maml": 1.5}, unfinished=names)
    said = message(RunFolderError, folder)
    assert (
        said == f"{folder}: no finished run has scores on a task: {folder}: run {names[0]} is not finished, and 1 more"
    )


def test_a_folder_that_is_neither_study_nor_run_is_refused(tmp_path):
    assert "is no study and no run: no study.yaml, no config.yaml" in message(RunFolderError, tmp_path)
    assert "nowhere does not exist" in message(RunFolderError, tmp_path / "nowhere")


def test_what_was_kept_is_read_when_it_is_asked_for(tmp_path):
    path = run(tmp_path / "r")
    query_results_path(path, "demo", "maml", "test").unlink()
    found = read_study([path])
    with pytest.raises(RunFolderError, match=r"demo\.maml\.test\.npz: the results of each question are missing"):
        _ = found.of(found.arm("maml"))[0].questions


# Damaged and foreign files.


def test_a_results_file_that_is_cut_off_is_an_error_with_its_line_or_its_checksum(tmp_path):
    path = run(tmp_path / "r", languages=("el",), questions=1) / "results.jsonl"
    write_checksums(path.parent, (path.parent / "report.md").read_text())
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for end in [0, *(end - back for end in ends for back in (2, 40))]:
        path.write_bytes(whole[:end])
        said = message(DataError, path.parent)
        line = max(1, whole[:end].count(b"\n") + (end > 0))
        assert said.startswith(f"{path}:{line}: "), (end, said)
        assert "truncated" in said
    for end in ends[:-1]:
        path.write_bytes(whole[:end])
        assert message(RunFolderError, path.parent).startswith(f"{path}: checksum mismatch")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[1, 2]", "not a score of metasearch: [1, 2]"),
        ('{"loss": 0.5}', "not a score of metasearch: it has no task, learner, encoder"),
        ('{"task": "demo", "learner": "maml"}', "it has no encoder, split, measure"),
        ("el,0.5", "not JSON"),
    ],
)
def test_a_line_of_something_else_is_named(tmp_path, line, expected):
    path = run(tmp_path / "r") / "results.jsonl"
    first, _, *others = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([first, line, *others, ""]), encoding="utf-8")
    said = message(DataError, path.parent)
    assert said.startswith(f"{path}:2: ")
    assert expected in said


# One identity of an encoder's scores.

QUERY, TRIM = {"query": "find: "}, ("ar", "de")


@pytest.mark.parametrize("other", [Made(1.5, learner="maml", prompts=QUERY), Made(1.5, learner="maml", trim=TRIM)])
def test_each_run_has_the_baseline_of_its_own_encoder_in_any_order_of_the_arguments(tmp_path, other):
    paths = [run(tmp_path / "a"), run(tmp_path / "b", other, start=Made(5.0))]
    for order in (paths, paths[::-1]):
        found = read_study(order)
        of_run = {arm: scored.run.path for scored in found.scored for arm in found.arms if scored.arm == arm}
        before = {of_run[arm]: of_run[found.baseline_of(arm)] for arm in found.arms if not arm.zero_shot}
        assert before == {path: path for path in paths}
        assert [found.baseline_of(arm) for arm in found.arms if arm.zero_shot] == [None, None]
        assert len(set(labels(found))) == 4


def test_the_languages_of_a_trimmed_vocabulary_have_no_order(tmp_path):
    one, other = (Made(1.5, learner="maml", trim=trim) for trim in (TRIM, TRIM[::-1]))
    assert labels(read_study([run(tmp_path / "a", one), run(tmp_path / "b", other, fold=1)])) == ["zero-shot", "maml"]


def test_what_was_made_elsewhere_needs_the_name_of_a_baseline_where_two_encoders_could_be_it(tmp_path):
    made = [Made(0.5, learner="zero-shot"), Made(0.9, learner="zero-shot", prompts=QUERY)]
    student = Made(1.0, learner="student")
    paths = [run(tmp_path / str(i), one) for i, one in enumerate(made)] + [elsewhere(run(tmp_path / "s", student))]
    alone, both = read_study([paths[0], paths[2]]), read_study(paths)
    assert alone.baseline_of(alone.arm("student")) == alone.arm("zero-shot")
    with pytest.raises(ConfigError, match=r"student: several encoders could be its baseline; name one with --baseline"):
        compare(both)
    with pytest.raises(ConfigError, match=r"none is the baseline of another; name one with --baseline"):
        compare(read_study(paths[:2]))
    assert [each.arm.label for each in compare(both, both.arm("student")).arms] == labels(both)[:2]


def test_one_encoder_with_other_scores_in_two_runs_is_refused_in_any_order(tmp_path):
    one, other = run(tmp_path / "a"), run(tmp_path / "b", Made(1.5, learner="fine-tune"), start=Made(0.8))
    said = message(ConfigError, one, other)
    assert said == message(ConfigError, other, one)
    assert said.startswith(f"{one} and {other} cannot be compared: both scored 'tiny' before training on fold 0 with ")
    assert "but map@20 multilingual ar all is 0." in said
    # A fold apart they are not asked about the same.
    assert len(read_study([one, run(tmp_path / "c", Made(1.5, learner="fine-tune"), fold=1)]).arms) == 3


def test_other_lengths_of_one_encoder_are_refused_and_older_rows_have_none(tmp_path):
    old, one, other = (run(tmp_path / name, fold=fold) for fold, name in enumerate("abc"))
    for path, length in ((one, 64), (other, 128)):
        rows = [row | {"lengths": {"question": length}} for row in read_rows(path / "results.jsonl")]
        (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(read_study([old, one]).folds) == 2
    said = message(ConfigError, old, one, other)
    assert "'tiny' was not the same encoder in both (lengths {'question': 64} and {'question': 128})" in said


# What may not be put together.


def test_runs_on_different_data_or_folds_are_refused(tmp_path):
    one, other = run(tmp_path / "a"), run(tmp_path / "b", fold=1, data="f00d")
    assert message(DataError, one, other) == (
        f"{one} and {other} cannot be compared: their data differs (fingerprints 4e8ffb836c3ab809, f00d)"
    )
    other = run(tmp_path / "c", fold=1, fold_seed=7)
    assert "their folds are cut differently (fold_seed None and 7)" in message(ConfigError, one, other)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(VERSIONS | {"torch": "2.0"}, "torch 2.13.0 and 2.0"), ({"metasearch": "0.1.0"}, "python 3.11.7 and None")],
)
def test_runs_of_different_versions_are_put_together_only_when_that_is_asked_for(tmp_path, versions, expected):
    one, other = run(tmp_path / "a"), run(tmp_path / "b", fold=1, versions=versions)
    assert message(ConfigError, one, other) == (
        f"{one} and {other} cannot be compared: {expected} differ; use --allow-mixed-versions to compare anyway"
    )
    assert where(read_study([one, other], any_version=True), "maml") == [(0, 0), (1, 0)]


def test_two_cells_of_a_study_that_are_the_same_are_refused(tmp_path):
    folder = study(tmp_path / "s", {"one": Made(learner="maml"), "two": Made(learner="maml")}, folds=(0,))
    paths = [folder / "cells" / name / "fold-0-seed-0" for name in ("one", "two")]
    assert message(ConfigError, folder) == f"{paths[0]} and {paths[1]} are both maml, fold 0, seed 0"


def test_the_first_of_several_systems_is_the_baseline_and_needs_no_name(tmp_path):
    paths = [elsewhere(run(tmp_path / name, Made(0.9, learner=name))) for name in ("bm25", "student")]
    for one, other in (paths, paths[::-1]):
        found = compare(read_study([one, other]))
        assert (found.baseline.label, [each.arm.label for each in found.arms]) == (one.name, [other.name])
        assert found.missing == ()


def test_a_file_of_scores_alone_is_named_with_what_can_be_compared(tmp_path):
    file = run(tmp_path / "a") / "results.jsonl"
    with pytest.raises(ConfigError, match=rf"^{file} is a file, without a score .*; name a run folder or study$"):
        read_study([tmp_path / "a", file])
