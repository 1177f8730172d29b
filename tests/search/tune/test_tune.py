"""Tuning: labels are held out by group, the simplest step that is good enough is kept, a stop loses no score."""

import gc
import json
import re
import shutil
import weakref
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import metasearch as ms
from helpers.files import write_all
from metasearch.config import registry
from metasearch.config.measure import RETRIEVAL_POOLS
from metasearch.data.labels import load_labels
from metasearch.data.records import Candidate
from metasearch.errors import ConfigError, DataError, Interrupted, RunFolderError
from metasearch.pipelines import factory
from metasearch.pipelines.folders import open_run
from metasearch.runs.callbacks import Callback
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults
from metasearch.search.tune import alignment, training
from metasearch.search.tune.choice import RANKINGS, Choice
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.plan import Plan
from metasearch.search.tune.steps import ADAPTER, ANSWERED, READS_ANSWERS, Step, list_steps
from metasearch.search.tune.table import Table
from metasearch.search.tune.training import prepare

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
    return Labels.of(load_labels(rows(count, **languages)), folds)


def scored(step, values, groups, pool="multilingual"):
    """Return a step's results by fold, from the values and the groups of each fold's questions."""
    return {
        (step, fold): QueryResults(
            {(pool, "de", "all"): tuple(f"q{fold}{i}" for i in range(len(own)))},
            {("map@20", pool, "de", "all"): np.array(own)},
            articles={f"q{fold}{i}": groups[fold][i] for i in range(len(own))},
        )
        for fold, own in enumerate(values)
    }


BASE, PROJECTION, TUNED = Step(), Step(projected=True), Step("fine-tune")


def table(*lines, folds=4, groups=None):
    """Return a table of lines, each the scores of all questions; each question is a group unless told otherwise."""
    count = len(lines[0])
    named = [(BASE, "multilingual"), (PROJECTION, "multilingual"), (TUNED, "multilingual"), (TUNED, "balanced")]
    held = np.arange(count) * folds // count
    return Table("map@20", tuple(named[: len(lines)]), np.array(lines), held, tuple(groups or map(str, range(count))))


def test_a_trained_step_is_not_kept_unless_it_beats_the_best_one_without_training():
    """Twelve groups: the projection adds 0.2 to each, give or take; the last step 0.02 more to as many as it takes."""
    base = np.full(12, 0.3)
    projection = base + 0.2 + 0.01 * np.arange(12)
    tuned = projection + 0.02 * np.resize([1, -1], 12) + 0.001
    choice = Choice.of(table(base, projection, tuned))
    assert [each.p < 0.05 for each in choice.standings] == [True, False, False]
    assert (choice.kept.step, choice.best.step) == (PROJECTION, TUNED)
    assert choice.kept.gain.mean == pytest.approx(0.2 + 0.01 * 11 / 2)
    # One of two other lines: 97.5 %, so that both intervals hold in 95 %.
    reach = special.stdtrit(11, 1 - 0.025 / 2) * 0.01 * np.std(np.arange(12), ddof=1) / 12**0.5
    assert choice.kept.gain.high - choice.kept.gain.mean == pytest.approx(reach)
    assert choice.others == {}
    assert str(choice).startswith("Kept: projection. map@20 × 100 is 55.5 (")
    assert "on 12 held-out questions in 4 folds, +25.5 (" in str(choice)
    assert str(choice).endswith(
        "No other one is significantly better; the highest score has fine-tune: +0.1 (-1.2 to +1.4). "
        # 1 - 0.05^(1/12) = 0.221; 25.5 · 0.779 / 0.221 = 90
        "Losses of up to 22 % of all questions may be in none of 12 groups; "
        "the gain outweighs them up to 90 points each."
    )


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(0.001, 0.002, 1), (0.2, 0.201, 2), (0.2, 0.4, 3), (0.001, 0.2, 3)]
)
def test_the_simplest_trained_line_that_no_other_beats_is_kept(first, second, kept):
    """Twelve groups: training adds `first` to the projection, and balanced scores `second`, give or take 0.02."""
    noise = 0.02 * np.resize([1, -1], 12)
    projection = 0.3 + 0.01 * np.arange(12)
    lines = table(np.full(12, 0.1), projection, projection + first + noise, projection + second - noise)
    assert lines.choose() == kept


@pytest.mark.parametrize(("more", "kept"), [(0.01, PROJECTION), (0.2, Step("adapter", True))])
def test_a_step_with_labels_also_has_to_beat_the_best_search_without_them(more, kept):
    """The projection gains 0.2, and the adapter 0.01 or 0.2 more, give or take 0.1: its gain is against projection."""
    base = np.full(12, 0.3)
    projection = base + 0.2 + 0.01 * np.arange(12)
    own = table(base, projection, projection + more + np.resize([0.1, -0.1], 12))
    own = replace(own, lines=(*own.lines[:2], (Step("adapter", True), "multilingual")))
    choice = Choice.of(own)
    assert (choice.kept.step, own.reference) == (kept, 1)
    assert choice.standings[0].step == (BASE if kept == PROJECTION else PROJECTION)
    assert choice.kept.gain.mean == pytest.approx(more if kept != PROJECTION else 0.2 + 0.01 * 11 / 2)


def test_lines_without_a_gain_are_kept_in_5_percent_though_another_one_is_better():
    """The last line gains 0.15, and the others nothing. Of 200 tunings, 5 % are 10, with a deviation of 3."""
    rng, wrong, found = np.random.default_rng(0), 0, 0
    for _ in range(200):
        base = rng.uniform(0.3, 0.7, 10)
        lines = [base + rng.normal(0, 0.2, 10) for _ in range(7)] + [base + rng.normal(0.15, 0.02, 10)]
        named = tuple((Step("adapter" if i else "", bool(i)), str(i)) for i in range(9))
        own = Table("map@20", named, np.array([base, *lines]), np.arange(10) % 4, tuple(map(str, range(10))))
        wrong += own.choose() not in (0, 8)
        found += own.choose() == 8
    assert wrong <= 10 + 2 * 3
    assert found > 150


def test_a_step_that_nothing_beats_is_not_kept_unless_it_beats_the_first():
    """The projection changes scores by 0.3 up or down, so that nothing is certain; training adds 0.12 to each."""
    base = np.full(12, 0.5)
    tuned = base + 0.12 + 0.001 * np.arange(12)
    choice = Choice.of(table(base, base + np.resize([0.3, -0.31], 12), tuned))
    assert [each.p < 0.05 for each in choice.standings] == [True, False, False]
    assert choice.kept.step == TUNED


def test_scores_of_all_folds_are_read_by_question_whatever_their_order():
    base = scored(BASE, [[0.1, 0.2], [0.3, 0.4]], [["a", "b"], ["c", "d"]])
    one, other = base.values()
    turned = replace(
        one,
        units={cell: ids[::-1] for cell, ids in one.units.items()},
        columns={cell: own[::-1] for cell, own in one.columns.items()},
    )
    found = Table.of({**base, (TUNED, 1): other, (TUNED, 0): turned}, "map@20")
    assert found.lines == ((BASE, "multilingual"), (TUNED, "multilingual"))
    assert found.scores.tolist() == [[0.1, 0.2, 0.3, 0.4]] * 2
    assert (found.folds.tolist(), found.groups) == ([0, 0, 1, 1], ("a", "b", "c", "d"))
    short = replace(
        one,
        units={cell: ids[:1] for cell, ids in one.units.items()},
        columns={cell: own[:1] for cell, own in one.columns.items()},
    )
    with pytest.raises(DataError, match="step 'fine-tune', pool multilingual: no score of question 'q01'"):
        Table.of({**base, (TUNED, 0): short, (TUNED, 1): other}, "map@20")


def test_every_step_is_found_by_its_name_in_results():
    names = ["", *READS_ANSWERS, *registry.names("learners")]
    steps = [Step(*each) for each in product(names, *[(False, True)] * 3)]
    assert [Step.named(str(step)) for step in steps] == steps
    assert str(Step("projection", True)) == "projection + learner projection"
    with pytest.raises(ConfigError, match=r"unknown step 'projection \+ mamml'\. Did you mean 'projection \+ maml'"):
        Step.named("projection + mamml")


def test_one_fold_that_changes_the_choice_is_named_with_the_gain_of_folds_that_did_not_choose():
    """The step is better by 0.3 in the first fold, and by 0.01 on average in the others: by nothing certain."""
    base = np.full(24, 0.5) + 0.01 * np.arange(24)
    gain = np.where(np.arange(24) < 4, 0.3, np.resize([0.1, -0.08], 24))
    own = table(base, base + gain, folds=6)
    choice = Choice.of(own)
    chosen = [own.without(fold).choose() for fold in range(6)]
    assert choice.kept.step == PROJECTION
    assert choice.nested.mean == pytest.approx(np.mean([gain[4 * i : 4 * i + 4].mean() * chosen[i] for i in range(6)]))
    assert (choice.others, chosen) == ({0: "base encoder"}, [0, 1, 1, 1, 1, 1])
    assert choice.kept.gain.mean == pytest.approx(gain.mean())

    rare = Choice.of(table(base, base + np.where(np.arange(24) < 6, 0.3, 0.001), folds=4))
    said = [f"'base encoder' without fold {fold + 1}" for fold in rare.others]
    assert all(each in str(rare) for each in said)
    assert ("; where the other folds choose, the gain is " in str(rare)) == bool(rare.others)


@pytest.mark.parametrize(("count", "folds", "ended", "kept", "said"), [
    (6, 3, 0, True, ". Without a fold, there are too few groups to leave the base encoder (smallest p 1/16, not below "
     "0.05). "),
    (4, 2, 0, False, ". There are too few groups to leave the base encoder (smallest p 1/16, not below 0.05). "),
    (5, 5, 1, False, ". There are too few groups to leave the base encoder (smallest p 1/16, not below 0.05). "),
    (8, 4, 0, True, " against the base encoder. "),
])  # fmt: skip
def test_too_few_groups_for_a_choice_to_leave_the_base_encoder_are_named(count, folds, ended, kept, said):
    """Of `count` groups, a choice without a fold has `count - count / folds`, each with one of two signs.

    A step whose training ended early doubles the p-value of the other one.
    """
    base = np.full(count, 0.3)
    choice = Choice.of(replace(table(base, base + 0.4 + 0.01 * np.arange(count), folds=folds), ended=ended))
    assert (choice.kept.step == PROJECTION) == kept
    assert said in str(choice)
    least = (1 + ended) * 0.5 ** (count - count // folds if kept else count)
    assert (choice.least_p, "too few" in str(choice)) == (least, least >= 0.05)
    assert choice.kept.gain.mean == pytest.approx((0.4 + 0.01 * (count - 1) / 2) * kept)


@pytest.mark.parametrize("lines", [1, 3])
def test_scores_at_the_limit_have_an_exact_bound_and_nothing_is_said_of_steps_that_there_are_not(lines):
    """Of 12 groups without an error, the share with one is 1 - 0.025^(1/12) at most (Clopper & Pearson)."""
    choice = Choice.of(table(*[np.ones(12)] * lines))
    low = 100 * 0.025 ** (1 / 12)
    tried = "Nothing else was tried." if lines == 1 else "Nothing else is better."
    ended = Choice.of(replace(table(*[np.ones(12)] * lines), ended=1))
    assert ("Nothing else was trained for all folds." in str(ended)) == (lines == 1)
    assert f"map@20 × 100 is 100.0 ({low:.1f} to 100.0) on 12 held-out questions in 4 folds. {tried}" in str(choice)
    assert "worse" not in str(choice)


def test_questions_of_a_group_count_once_and_intervals_end_at_possible_scores():
    """Twelve questions on four documents are four observations: their interval is that of four."""
    base, tuned, named = [0.2, 0.9, 0.1, 0.9], [0.6, 1.0, 0.1, 0.8], "abcd"
    four = Choice.of(table(base, tuned, groups=named))
    many = Choice.of(table(np.repeat(base, 3), np.repeat(tuned, 3), groups="aaabbbcccddd"))
    for one, other in zip(four.standings, many.standings, strict=True):
        assert (one.gain.mean, one.gain.p) == pytest.approx((other.gain.mean, other.gain.p))
        assert one.p == other.p
    assert many.standings[1].mean.high == 1


@pytest.mark.parametrize(("tuned", "behind"), [(0.41, []), (0.4, [TUNED]), (0.1, [TUNED])])
def test_a_trained_step_is_behind_if_it_finds_no_more_than_the_best_one_without_training(tuned, behind):
    """The projection has 0.4. Training has at most 0.41, and with balanced scores 0.1 less."""
    groups = [["a", "b"]]
    results = scored(BASE, [[0.3, 0.3]], groups) | scored(PROJECTION, [[0.2, 0.6]], groups)
    lines = Table.of(results | scored(TUNED, [[tuned, tuned]], groups), "map@20")
    low = replace(lines, lines=(*lines.lines, (TUNED, "balanced")), scores=np.vstack([lines.scores, 2 * [tuned - 0.1]]))
    assert lines.behind() == low.behind() == behind


def test_a_step_that_is_behind_is_trained_for_no_further_fold(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(training, "_MOST_EPISODES", 1)
    monkeypatch.setattr(Table, "improvable", lambda self: True)
    tuned = Step("fine-tune", projected=True)
    monkeypatch.setattr(Table, "behind", lambda self: asked.append({*self.folds.tolist()}) or [tuned])
    result = ms.tune(rows(), tmp_path / "out", encoder="tiny", folds=3)
    assert asked[0] == {0}
    assert {row["fold"] for row in RunFolder(tmp_path / "out").results() if row["learner"] == str(tuned)} == {0}
    assert {line["step"] for line in result.table} == {"base encoder", "projection"}
    said = "'projection + fine-tune' was trained for 1 of 3 folds: it finds no more there than the best step without"
    assert said in result.report
    assert "lack of time" not in result.report


def test_a_fold_frees_the_last_encoder_shares_its_tokenizer_and_recomputes_activations(tmp_path, monkeypatch):
    """Nothing collects garbage but the tuning itself."""
    fit, alive, weights, tokenizers, how = factory.fit, [], [], [], []

    def recorded(learner, *args, checkpointing, **others):
        alive.append([each() is not None for each in weights])
        weights.append(weakref.ref(next(learner.encoder.model.parameters())))
        tokenizers.append(learner.encoder.model.tokenizer)
        how.append(checkpointing)
        return fit(learner, *args, checkpointing=checkpointing, **others)

    monkeypatch.setattr(factory, "fit", recorded)
    monkeypatch.setattr(training, "_MOST_EPISODES", 1)
    monkeypatch.setattr(Table, "improvable", lambda self: True)
    monkeypatch.setattr(Table, "behind", lambda self: [])
    gc.disable()
    try:
        ms.tune(rows(), tmp_path / "out", encoder="tiny", folds=3)
    finally:
        gc.enable()
    assert alive[:3] == [[], [False], [False, False]]
    assert len({id(each) for each in tokenizers}) == 1
    assert {*how} == {"gradcache"}


def test_a_step_without_all_folds_is_not_compared_but_counts_in_the_correction():
    """Each of two steps is tested at half of the level, whether or not the other one's training ended early."""
    groups = [["a"], ["b"], ["c"]]
    results = scored(BASE, [[0.3], [0.4], [0.3]], groups) | scored(PROJECTION, [[0.6], [0.8], [0.5]], groups)
    alone, ended = Table.of(results, "map@20"), Table.of(results | scored(TUNED, [[0.9], [0.9]], groups), "map@20")
    assert ended.lines == alone.lines == ((BASE, "multilingual"), (PROJECTION, "multilingual"))
    assert ended.p(0) == pytest.approx(2 * alone.p(0))


def test_no_label_of_a_held_out_group_is_trained_on_and_unlabelled_texts_are_searched_by_every_fold():
    known = labels()
    extra = (Candidate("passage", "en", "Bread is baked in an oven.", "passage"),)
    known = replace(known, everything=replace(known.data, candidates=(*known.data.candidates, *extra)))
    folds = [known.hold_out(fold) for fold in range(known.folds)]
    asked = [{question.group for question in fold.split.test.questions} for fold in folds]
    assert sorted(group for own in asked for group in own) == sorted(set(known.data.groups))
    for fold, own in zip(folds, asked, strict=True):
        assert own.isdisjoint(fold.split.train.groups)
        assert {*extra} <= {*fold.split.train.candidates} & {*fold.split.test.candidates}
        assert len(fold.split.test.candidates) == len(known.data.candidates) + 1
    assert len(known.hold_out(None).split.train.questions) == 24


def test_a_benchmark_keeps_its_own_folds_and_pools():
    benchmark = ms.load_benchmark("demo", fold=3)
    fold = Labels.of(benchmark, 4).hold_out(3)
    assert fold.split.test.candidates == benchmark.split.test.candidates
    assert {*fold.split.train.groups} == {*benchmark.split.train.groups, *benchmark.split.dev.groups}


@pytest.mark.parametrize(("count", "most", "folds"), [(3, 5, 0), (4, 5, 0), (6, 5, 3), (12, 5, 5), (12, 4, 4)])
def test_folds_have_two_groups_at_least_and_few_labels_none(count, most, folds):
    assert labels(count, most).folds == folds


def test_steps_and_pools_are_those_that_the_data_allows():
    assert [str(step) for step in list_steps(True, True, ["maml"])] == [
        "base encoder", "projection", "projection + fine-tune", "alignment + projection + fine-tune",
        "alignment + projection + maml",
    ]  # fmt: skip
    assert [str(step) for step in list_steps(False)] == ["base encoder", "fine-tune"]
    assert [str(step) for step in list_steps(True, adapters=[ADAPTER, ANSWERED])] == [
        "projection", "base encoder", "projection + adapter", "projection + adapter with answers",
        "projection + fine-tune",
    ]  # fmt: skip
    one, two, few = labels(40, languages=["de"]), labels(40), labels(2)  # with its answers 4 texts a language
    assert (one.pools(), two.pools()) == (("multilingual",), ("multilingual", "balanced"))
    assert (one.projectable(), two.projectable(), few.projectable()) == ((), ("de", "en"), ())
    with pytest.raises(ConfigError, match="does not learn from labels"):
        list_steps(True, learners=["distill"])


@pytest.mark.parametrize(("count", "size", "sets", "steps"), [(12, 18, 1, 12), (40, 32, 1, 12), (90, 64, 2, 6)])
def test_sets_are_as_large_as_the_labels_and_of_all_languages(count, size, sets, steps):
    """Of `count` questions in each of two languages, a fold of five is held out."""
    fold = labels(count).hold_out(0)
    trained, recipe = prepare(Step("fine-tune"), fold, "tiny")
    assert (recipe.episodes.k, recipe.episodes.q, recipe.budget.meta_train) == (size, size, steps)
    assert len(trained.arrangements["meta-train"][0].variants) == sets
    assert trained.split.train.languages == {"mul"}
    assert trained.split.test == fold.split.test


def test_a_limit_of_time_drops_folds_and_then_the_most_expensive_steps(caplog):
    base, tuned, maml = Step(), Step("fine-tune"), Step("maml")
    plan = Plan((base, tuned, maml), 5, {base: 0, tuned: 10, maml: 100}, alignment=0)
    assert plan.seconds == 5 * (10 + 100 + 100) + 100  # the most expensive one has a control
    assert plan.within(4 * 210 + 100).folds == 4
    shorter = plan.within(70)
    assert (shorter.steps, shorter.folds, shorter.seconds) == ((base, tuned), 3, 3 * (10 + 10) + 10)
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
    monkeypatch.setattr(training, "_MOST_EPISODES", 1)  # of fine-tuning: one step
    monkeypatch.setattr(Table, "improvable", lambda self: True)
    monkeypatch.setattr(Table, "behind", lambda self: [])
    monkeypatch.setattr("metasearch.encoders.encoder._WORTH_IT", 0)  # of any encoder
    monkeypatch.setattr("metasearch.encoders.encoder.fast_in_bfloat16", lambda: True)
    for pool in RETRIEVAL_POOLS:  # whichever is kept, which may differ between processors
        monkeypatch.setitem(RANKINGS, pool, {"hybrid": True})
    pages = {f"K{row['group']}.{row['language']}.md": row["document"] for row in rows()}
    texts = write_all(tmp_path / "pages", {**pages, "oven.de.md": "Brot wird im Ofen gebacken."})
    told, how = load_labels(rows()), {"documents": texts, "encoder": "tiny", "folds": 3}
    whole = ms.tune(told, tmp_path / "whole", **how)
    with pytest.raises(Interrupted, match=r"Continue with: metasearch\.tune\("):
        ms.tune(told, tmp_path / "cut", **how, open_callback=lambda name: nullcontext(Stopping()))
    before = (tmp_path / "cut/results.jsonl").read_text()
    # As an earlier version wrote them, which scored other texts.
    (tmp_path / "cut/results.jsonl").write_text(re.sub('"data": *"[^"]*"', '"data": "other"', before))
    with pytest.raises(RunFolderError, match=r"cut: its scores are of other passages: .*; choose another -o$"):
        ms.tune(told, tmp_path / "cut", **how)
    (tmp_path / "cut/results.jsonl").write_text(before)
    # On a machine that is faster in float32.
    monkeypatch.setattr("metasearch.encoders.encoder.fast_in_bfloat16", lambda: False)
    cut = ms.tune(told, tmp_path / "cut", **how)
    assert (tmp_path / "cut/results.jsonl").read_text().startswith(before)
    assert cut.choice == whole.choice
    assert len(before.splitlines()) > 1
    assert [line["kept"] for line in cut.table].count(True) == 1
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {"model", "index", "report.html", "report.md", "config.yaml", "results.jsonl"} <= names
    assert f"## Scores\n\n{whole.choice}\n" in (tmp_path / "whole/model/README.md").read_text()
    assert whole.encoder.neutral == whole.choice.kept.step.projected
    searcher = ms.open_searcher(tmp_path / "whole/index")
    expected = None if whole.choice.kept.step.projected else False  # as scored, however many documents there will be
    assert searcher.store.kind.settings["neutral"] is expected
    assert searcher.store.kind.settings["precision"] == "bfloat16"  # as `metasearch index` would take
    assert searcher.store.ranking_facts == {"balance": False, "expand": False, "hybrid": True}  # as was kept
    hits = searcher.search(["Was wird gebacken?"], top_k=1)
    assert hits[0][0].passage.file.endswith("oven.de.md")
    with pytest.raises(RunFolderError, match="seed is 0, not 1"):
        ms.tune(told, tmp_path / "cut", **how, seed=1)


@pytest.mark.slow
def test_other_learners_and_alignment_are_trained_and_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_MOST_EPISODES", 1)
    monkeypatch.setattr(Table, "behind", lambda self: [])
    monkeypatch.setattr(alignment, "_BUDGET", ("stages.align.budget.steps=2", "stages.align.budget.epochs=1"))
    pairs = "".join(f"Where is the key K{i}?\tWo ist der Schlüssel K{i}?\n" for i in range(80))
    (tmp_path / "en-de.tsv").write_text(pairs, encoding="utf-8")
    how = {"learners": ["maml", "maml-align"], "translations": tmp_path / "en-de.tsv", "folds": 3}
    result = ms.tune(rows(), tmp_path / "out", encoder="tiny", **how)
    trained = [line["step"] for line in result.table if line["pool"] == "multilingual"]
    assert trained == [
        "base encoder", "projection", "projection + fine-tune", "alignment + projection + fine-tune",
        "alignment + projection + maml", "alignment + projection + maml-align",
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


@pytest.fixture
def earlier(tmp_path):
    """Return a finished tuning of version 0.2.0, which kept the step that was not significantly worse than the best.

    Its model is left out. Made by `ms.tune(rows(), folder, encoder="tiny", folds=3, learners=["maml"])`, two episodes.
    """
    return shutil.copytree(Path(__file__).parents[2] / "fixtures/tuning", tmp_path / "earlier")


def test_a_finished_tuning_of_an_earlier_version_is_shown_with_its_report_and_scores(earlier):
    report = (earlier / "report.md").read_text(encoding="utf-8")
    assert open_run(earlier).execute().report == report
    result = ms.tune(rows(), earlier, encoder="tiny", folds=3, learners=["maml"])
    assert result.report == report
    ranked = {"multilingual": "", "balanced": ", balanced scores"}
    shown = re.findall(r"^\| (\S.*?)(?: \(kept\))? +\| +\**(\d+\.\d)\** \|", report, re.M)
    assert [(line["step"] + ranked[line["pool"]], f"{100 * line['mean']:.1f}") for line in result.table] == shown
    assert len(shown) == 6


def test_a_model_that_another_version_chose_by_another_rule_is_named(earlier, caplog):
    """Balanced scores beat the first line, and no labels beat balanced scores; the paired rule kept `maml`."""
    result = ms.tune(rows(), earlier, encoder="tiny", folds=3, learners=["maml"])
    assert "Kept: maml." in result.report
    assert (result.choice.kept.step, result.choice.kept.pool) == (BASE, "balanced")
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{earlier}: another version chose the model by another rule; see report.md"
    ]
