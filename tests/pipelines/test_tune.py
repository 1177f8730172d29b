"""Tuning: labels are held out by group, the simplest step that is good enough is kept, a stop loses no score."""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import metasearch as ms
from metasearch.config.run import TuneConfig
from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.neutral import is_neutral
from metasearch.errors import ConfigError, Interrupted, RunFolderError
from metasearch.pipelines.tune import job, steps
from metasearch.pipelines.tune.choice import choose
from metasearch.pipelines.tune.folds import Labels, count_folds, pooled
from metasearch.pipelines.tune.job import TuneRun
from metasearch.pipelines.tune.steps import Plan, Step, ladder, pools, prepare, projectable
from metasearch.runs.callbacks import Callback
from metasearch.runs.per_query_results import QueryResults

TELLS = {"de": ("Wo ist", "liegt im Haus"), "en": ("Where is the", "is in the house")}


def rows(count=12, languages=("de", "en")):
    """Return questions about things, each asked and answered in each language."""
    return [
        {"query": f"{ask} K{i}?", "document": f"K{i} {tell} {i}.", "language": language, "group": str(i)}
        for language, (ask, tell) in TELLS.items()
        if language in languages
        for i in range(count)
    ]


def labels(count=12, folds=5, extra=(), **languages):
    return Labels.of(RetrievalData.from_rows(rows(count, **languages)), folds)


def scored(values, groups, pool="multilingual"):
    """Return scores of steps from the values of their questions by fold; `groups` has the group of each question."""
    return {
        step: {
            fold: QueryResults(
                {(pool, "de", "all"): tuple(f"q{fold}{i}" for i in range(len(own)))},
                {("map@20", pool, "de", "all"): np.array(own)},
                articles={f"q{fold}{i}": groups[fold][i] for i in range(len(own))},
            )
            for fold, own in enumerate(folds)
        }
        for step, folds in values.items()
    }


def test_the_simplest_step_is_kept_that_is_not_significantly_worse_than_the_best():
    groups = [["a", "b"], ["c", "d"]]
    choice = choose(
        scored(
            {
                "base": [[0.30, 0.31], [0.32, 0.31]],
                "projection": [[0.50, 0.67], [0.51, 0.66]],  # behind by 0.10, -0.05, 0.10, -0.05 (t = 0.6)
                "tuned": [[0.60, 0.62], [0.61, 0.61]],
            },
            groups,
        ),
        "map@20",
    )
    assert [each.worse for each in choice.standings] == [True, False, False]
    assert (choice.kept.step, choice.best.step) == ("projection", "tuned")
    assert choice.kept.gain.mean == pytest.approx((0.20 + 0.36 + 0.19 + 0.35) / 4)
    assert str(choice).startswith("Kept: projection. map@20 × 100 is 58.5 (")
    assert "on 4 held-out questions in 2 folds, +27.5 (" in str(choice)
    assert "simplest that is not significantly worse than the best, tuned" in str(choice)


def test_a_ranking_that_is_significantly_worse_than_another_of_its_step_is_not_kept():
    """Training changes each score by 0.2 up or down, which is not significant; the other ranking adds 0.05 to each."""
    change = np.array([0.2, -0.2, 0.2, -0.2, 0.25, -0.2])
    groups = [[*"abcdef"]]
    plain, balanced = (
        {"base": [base], "tuned": [base + change]}
        for base in (np.full(6, 0.5), np.array([0.55, 0.55, 0.55, 0.55, 0.55, 0.56]))
    )
    scores = scored(plain, groups)
    for step, by_fold in scored(balanced, groups, "balanced").items():
        own, other = scores[step][0], by_fold[0]
        scores[step][0] = QueryResults(
            {**own.units, **other.units}, {**own.columns, **other.columns}, articles=own.articles
        )
    choice = choose(scores, "map@20")
    assert choice.standings[0].p > 0.05 > choice.standings[0].p_step
    assert (choice.kept.step, choice.kept.pool) == ("base", "balanced")


def test_questions_of_a_group_count_once_and_intervals_end_at_possible_scores():
    """Twelve questions on two documents are two observations: their interval is that of two, and as wide as can be."""
    many = {"base": [[0.2] * 6, [0.9] * 6], "tuned": [[0.6] * 6, [1.0] * 6]}
    two = {"base": [[0.2], [0.9]], "tuned": [[0.6], [1.0]]}
    one, other = (choose(scored(values, [["a"] * 6, ["b"] * 6]), "map@20").standings[1] for values in (many, two))
    assert (one.gain.mean, one.gain.p) == pytest.approx((other.gain.mean, other.gain.p))
    assert one.gain.p > 0.3
    assert (one.mean.low, one.mean.high, one.gain.low, one.gain.high) == (0, 1, -1, 1)


def test_a_step_without_all_folds_is_not_compared():
    groups = [["a"], ["b"], ["c"]]
    values = scored({"base": [[0.3], [0.4], [0.3]], "dropped by --time": [[0.9], [0.9]]}, groups)
    assert [each.step for each in choose(values, "map@20").standings] == ["base"]


def test_no_label_of_a_held_out_group_is_trained_on_and_unlabelled_texts_are_searched_by_every_fold():
    given = labels()
    extra = (Candidate("passage", "en", "Bread is baked in an oven.", "passage"),)
    given = replace(given, extra=extra)
    folds = given.hold_out()
    asked = [{question.group for question in fold.split.test.questions} for fold in folds]
    assert sorted(group for own in asked for group in own) == sorted(set(given.data.groups))
    for fold, own in zip(folds, asked, strict=True):
        assert own.isdisjoint(fold.split.train.groups)
        assert {*extra} <= {*fold.split.train.candidates} & {*fold.split.test.candidates}
        assert len(fold.split.test.candidates) == len(given.data.candidates) + 1
    assert len(given.train_on_all().split.train.questions) == 24


def test_a_benchmark_keeps_its_own_folds_and_pools():
    benchmark = ms.load_benchmark("demo", fold=3)
    fold = Labels.of(benchmark, 4).hold_out()[3]
    assert fold.split.test.candidates == benchmark.split.test.candidates
    assert {*fold.split.train.groups} == {*benchmark.split.train.groups, *benchmark.split.dev.groups}


@pytest.mark.parametrize(("count", "most", "folds"), [(3, 5, 0), (4, 5, 0), (6, 5, 3), (12, 5, 5), (12, 4, 4)])
def test_folds_have_two_groups_at_least_and_few_labels_none(count, most, folds):
    assert count_folds(RetrievalData.from_rows(rows(count)), most) == folds


def test_rungs_and_pools_are_those_that_the_data_allows():
    assert [str(step) for step in ladder(True, True, ["maml"])] == [
        "base encoder", "projection", "projection + fine-tune", "alignment + projection + fine-tune",
        "alignment + projection + maml",
    ]  # fmt: skip
    assert [str(step) for step in ladder(False)] == ["base encoder", "fine-tune"]
    one, two = labels(languages=["de"]).data, labels().data
    assert (pools(one), pools(two)) == (("multilingual",), ("multilingual", "balanced"))
    assert (projectable([one]), projectable([two])) == ((), ("de", "en"))
    with pytest.raises(ConfigError, match="does not learn from labels"):
        ladder(True, learners=["distill"])


@pytest.mark.parametrize(("count", "size", "sets"), [(12, 18, 1), (40, 32, 1), (90, 64, 2)])
def test_sets_are_as_large_as_the_labels_and_of_all_languages(count, size, sets):
    """Of `count` questions in each of two languages, a fold of five is held out."""
    fold = labels(count).hold_out()[0]
    trained, recipe = prepare(Step("fine-tune"), fold, "tiny")
    assert (recipe.episodes.k, recipe.episodes.q, recipe.budget.meta_train) == (size, size, 12)
    assert len(trained.arrangements["meta-train"][0].variants) == sets
    assert trained.split.train.languages == {"mul"}
    assert pooled(fold).split.test == fold.split.test


def test_a_limit_of_time_drops_folds_and_then_the_most_expensive_steps(caplog):
    base, tuned, maml = Step(), Step("fine-tune"), Step("maml")
    plan = Plan((base, tuned, maml), 5, {base: 0, tuned: 10, maml: 100}, alignment=0)
    assert plan.seconds == 5 * (10 + 100) + 100
    assert plan.within(4 * 110 + 100).folds == 4
    shorter = plan.within(60)
    assert (shorter.steps, shorter.folds, shorter.seconds) == ((base, tuned), 3, 3 * 10 + 10)
    assert "dropped the step 'maml'" in caplog.text
    assert plan.within(-150).steps == (base,)  # the encoding took longer than the limit
    assert "the shortest plan ends about 2 min 30 s after the limit" in caplog.text


class Stopping(Callback):
    """Stops, as Ctrl-C does, at a training of the second fold."""

    def on_step(self, step, total, phase, terms):
        if phase.startswith("fold 2"):
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_tuning_that_was_stopped_resumes_to_the_same_scores_and_writes_what_it_promises(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "_MOST_EPISODES", 1)  # of fine-tuning: one step
    texts = tmp_path / "pages"
    texts.mkdir()
    (texts / "oven.de.md").write_text("Brot wird im Ofen gebacken.", encoding="utf-8")
    given, how = RetrievalData.from_rows(rows()), {"documents": texts, "encoder": "tiny", "folds": 3}
    whole = ms.tune(given, tmp_path / "whole", **how)
    with pytest.raises(Interrupted, match=r"Continue with: metasearch\.tune\("):
        ms.tune(given, tmp_path / "cut", **how, open_callback=lambda name: nullcontext(Stopping()))
    before = (tmp_path / "cut/results.jsonl").read_text()
    cut = ms.tune(given, tmp_path / "cut", **how)
    assert (tmp_path / "cut/results.jsonl").read_text().startswith(before)
    assert cut.choice == whole.choice
    assert len(before.splitlines()) > 1
    assert [line["kept"] for line in cut.table].count(True) == 1
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {"model", "index", "report.html", "report.md", "config.yaml", "results.jsonl"} <= names
    assert f"## Scores\n\n{whole.choice}\n" in (tmp_path / "whole/model/README.md").read_text()
    assert is_neutral(whole.encoder) == ("projection" in whole.choice.kept.step)
    hits = ms.open_searcher(tmp_path / "whole/index").search(["Was wird gebacken?"], top_k=1)
    assert hits[0][0].passage.file.endswith("oven.de.md")
    with pytest.raises(RunFolderError, match="seed is 0, not 1"):
        ms.tune(given, tmp_path / "cut", **how, seed=1)


@pytest.mark.parametrize(
    ("count", "pages", "note"),
    [
        (12, 1, "Folds search the labelled documents alone: every passage of the documents holds one of them."),
        (12, 3, "Folds also search 2 of 2 passages of the documents."),
        (1, 3, None),
    ],
)
def test_the_report_says_which_passages_of_the_documents_folds_search(tmp_path, count, pages, note):
    """The first page is a labelled document. One label has no folds."""
    given = rows(count)
    for number, text in enumerate([given[0]["document"], "Brot wird gebacken.", "Der Zug ist spät."][:pages]):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    config = TuneConfig(documents=[str(tmp_path)], encoder={"name": "tiny"})
    run = TuneRun(config, tmp_path / "out", RetrievalData.from_rows(given))
    run.load_data()
    run.load_encoders()
    assert [each for each in run.notes if "passages of the documents" in each or "Folds" in each] == [note] * bool(note)


@pytest.mark.slow
def test_other_learners_and_alignment_are_trained_and_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "_MOST_EPISODES", 1)
    monkeypatch.setattr(job, "_ALIGNMENT", ("stages.align.budget.steps=2", "stages.align.budget.epochs=1"))
    pairs = "".join(f"Where is the key K{i}?\tWo ist der Schlüssel K{i}?\n" for i in range(80))
    (tmp_path / "en-de.tsv").write_text(pairs, encoding="utf-8")
    how = {"learners": ["maml", "maml-align"], "translations": tmp_path / "en-de.tsv", "folds": 3}
    result = ms.tune(rows(), tmp_path / "out", encoder="tiny", **how)
    trained = [line["step"] for line in result.table if line["pool"] == "multilingual"]
    assert trained == [
        "base encoder", "fine-tune", "alignment + projection + fine-tune", "alignment + projection + maml",
        "alignment + projection + maml-align",
    ]  # fmt: skip
    scores = {line["step"]: line["mean"] for line in result.table if line["pool"] == "multilingual"}
    assert len({*scores.values()}) > 3  # each has weights of its own
    assert (tmp_path / "out/aligned/model").is_dir()


def test_a_few_labels_bring_what_needs_none(tmp_path):
    result = ms.tune(rows(3), tmp_path / "out", encoder="tiny")
    assert result.choice is None
    assert result.table == []
    assert "Too few labelled questions to hold some out (6; at least 8 in 6 groups)" in result.report
    assert json.loads((tmp_path / "out/facts.json").read_text())
