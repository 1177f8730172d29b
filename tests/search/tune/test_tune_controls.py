"""A trained step is kept only if it beats the same training on shuffled labels, and harms no side of the search."""

from dataclasses import replace

import numpy as np
import pytest

import metasearch as ms
from metasearch.data.labels import load_labels
from metasearch.evaluation.evaluate import evaluate
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import load
from metasearch.search.tune import report, training
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import Table, results_path
from metasearch.search.tune.training import prepare, shuffled
from metasearch.search.tune.workshop import Workshop
from search.tune.test_tune import rows

BASE, TUNED, ANSWERED = Step(), Step("fine-tune"), Step("adapter with answers")
GROUPS = 12
TINY = 0.01 * np.arange(GROUPS)
"""Differences of groups, so that no two are equal."""
TURNS = np.resize([0.05, -0.05], GROUPS)


def table(base, tuned, control=None, **sides):
    lines = [(BASE, "multilingual"), (TUNED, "multilingual"), (TUNED.control, "multilingual")]
    scores = [own for own in (base, tuned, control) if own is not None]
    named = tuple(map(str, range(GROUPS)))
    places = tuple((i * 4 // GROUPS, "en", name) for i, name in enumerate(named))
    folds = np.array([fold for fold, *_ in places])
    return Table("map@20", tuple(lines[: len(scores)]), np.array(scores), folds, named, places, sides)


def test_a_gain_that_shuffled_labels_bring_too_is_not_kept():
    """Training adds 0.2 to each of 12 groups, and so does the control, give or take 0.05; then the control adds 0."""
    base = np.full(GROUPS, 0.3)
    tuned = base + 0.2 + TINY
    refused = Choice.of(table(base, tuned, tuned + TURNS - 0.001))
    assert refused.kept.step == BASE
    assert str(refused).endswith(
        "Nothing else may be kept. 'fine-tune' is not kept: the same with shuffled labels is not significantly "
        "worse (+0.1 against it)."
    )
    kept = Choice.of(table(base, tuned, base + TURNS))
    assert (kept.kept.step, kept.refused) == (TUNED, {})
    assert kept.standings[1].control.mean == pytest.approx(0.2 + TINY.mean())
    assert [each.step for each in kept.standings] == [BASE, TUNED]  # a control is not one to choose


@pytest.mark.parametrize(
    ("step", "less", "accept", "kept"),
    [
        (Step(projected=True), 0.0, False, False),
        (Step(projected=True), 0.0, True, False),  # it takes no label that could be wrong
        (Step(projected=True), 0.3, False, True),
        (ANSWERED, 0.0, False, False),
        (ANSWERED, 0.0, True, True),
        (ANSWERED, 0.3, False, True),
    ],
)
def test_no_step_is_kept_on_labels_that_the_encoder_answers_no_better_than_shuffled_ones(step, less, accept, kept):
    """The step adds 0.1 to each group. The base encoder has 0.3, and so much less with shuffled labels."""
    base = np.full(GROUPS, 0.3)
    own = table(base, base + 0.1 + TINY, base - less + TURNS)
    lines = tuple((each, "multilingual") for each in (BASE, step, BASE.control))
    found = Choice.of(replace(own, lines=lines, accept=accept))
    assert found.kept.step == (step if kept else BASE)
    said = {
        ANSWERED: "the labels may be wrong, or unknown to the encoder; --accept keeps it",
        Step(projected=True): "without training, these labels are answered no better than shuffled ones",
    }[step]
    assert (f"'{step}' is not kept: {said}." in str(found)) != kept
    assert found.doubtful == (less == 0.0)
    steps = report._next_steps(found, "e5")
    assert ("Look at some labels: do they name the pages that answer them?" in steps) == found.doubtful


@pytest.mark.parametrize(("count", "doubtful"), [(0, True), (3, False)])
def test_labels_are_doubtful_only_if_a_gain_of_ten_points_over_shuffled_ones_is_ruled_out(count, doubtful):
    """The encoder answers so many of 12 groups, at 0.5: three are not significant (p 1/8), and may be 27 points."""
    base = np.where(np.arange(GROUPS) % 4 < count / 3, 0.5, 0.0)
    own = table(base, base + 0.4 + TINY / 2, np.zeros(GROUPS))
    lines = ((BASE, "multilingual"), (ANSWERED, "multilingual"), (BASE.control, "multilingual"))
    found = replace(own, lines=lines)
    assert (found.meaningful, found.doubtful) == (False, doubtful)
    assert {found.without(fold).choose() for fold in range(4)} == {0 if doubtful else 1}


def test_a_control_is_no_step_that_training_has_to_beat():
    own = table(np.full(GROUPS, 0.1), np.full(GROUPS, 0.3), np.full(GROUPS, 0.5))
    control = replace(own, lines=(*own.lines[:2], (BASE.control, "multilingual")))
    assert control.behind() == []
    assert replace(own, scores=own.scores[[1, 0, 2]]).behind() == [TUNED]


@pytest.mark.parametrize("one", [1.0, 0.9])
def test_nearly_equal_scores_do_not_hide_that_labels_are_right_or_can_be_answered_better(one):
    """A third of all bootstrap samples lack the different group, and have no spread."""
    base = np.array([one, *np.ones(GROUPS - 1)])
    told = table(base, base, 0 * base)
    right = replace(told, lines=((BASE, "multilingual"), (TUNED, "multilingual"), (BASE.control, "multilingual")))
    assert right.meaningful
    assert not replace(right, scores=right.scores[[2, 1, 0]]).meaningful
    assert table(1 - base, 1 - base).improvable()


@pytest.mark.slow
def test_the_control_of_a_step_without_training_asks_for_the_answers_of_other_questions(tmp_path):
    ms.tune(rows(), tmp_path / "out", encoder="tiny", folds=3)
    run, meant = RunFolder(tmp_path / "out"), []
    for step in (BASE, BASE.control):
        ranking = load(results_path(run, "labels", step, 0))[0].ranking
        right = np.split(ranking.relevant, ranking.offsets[1:-1])
        meant.append([{ranking.candidates[i].text for i in own} for own in right])
    assert len(meant[0]) == 2 * GROUPS / 3
    assert all(own.isdisjoint(other) and len(own) == len(other) for own, other in zip(*meant, strict=True))


def test_only_steps_that_would_be_kept_need_a_control():
    base = np.full(GROUPS, 0.3)
    assert table(base, base + TURNS).uncontrolled() == []
    assert table(base, base + 0.2 + TINY).uncontrolled() == [TUNED]
    assert table(base, base + 0.2 + TINY, base + TURNS).uncontrolled() == []
    # The first fold hides the gain of the other ones, which choose the step without it.
    own = table(base, base + np.where(np.arange(GROUPS) < 3, -0.4, 0.2 + TINY))
    assert (own.choose(), own.uncontrolled()) == (0, [TUNED])


@pytest.mark.parametrize(("accept", "kept"), [(False, BASE), (True, TUNED)])
def test_a_step_that_harms_the_search_in_one_language_is_kept_only_if_the_user_accepts_it(accept, kept):
    """Pages in other languages gain 0.5, and those in the question's language lose 0.1: all gain 0.2."""
    base = np.full(GROUPS, 0.5)
    own = np.array([base, base - 0.1 - TINY / 100, base])
    others = np.array([base - 0.4, base + 0.1 + TINY / 100, base - 0.4])
    found = Choice.of(replace(table(base, base + 0.2 + TINY, base + TURNS, own=own, others=others), accept=accept))
    assert found.kept.step == kept
    lost = 100 * (0.1 + (TINY / 100).mean())
    said = f"it ranks pages in the question's language significantly worse (-{lost:.1f}); --accept keeps it"
    assert (said in str(found)) == (not accept)


def test_a_step_that_harms_questions_in_one_language_is_not_kept():
    """Six groups have German questions, which gain 0.5, and six English ones, which lose 0.1: all gain 0.2."""
    base, german = np.full(GROUPS, 0.4), np.arange(GROUPS) % 2 == 0
    told = table(base, base + np.where(german, 0.5 + TINY, -0.1 - TINY / 100), base + TURNS)
    places = tuple(
        (fold, "de" if own else "en", name) for (fold, _, name), own in zip(told.places, german, strict=True)
    )
    found = Choice.of(replace(told, places=places))
    lost = 100 * (0.1 + (TINY / 100)[~german].mean())
    assert found.kept.step == BASE
    assert f"it ranks pages for questions in en significantly worse (-{lost:.1f}); --accept keeps it" in str(found)
    assert Choice.of(replace(told, places=places, accept=True)).kept.step == TUNED


@pytest.mark.parametrize(("left", "kept"), [(0.0, BASE), (0.9, TUNED)])
@pytest.mark.parametrize("greek", [1, 4])
def test_a_language_with_few_groups_that_loses_its_answers_is_harmed_or_named(greek, left, kept):
    """English gains 0.3, give or take. Up to four Greek groups fall from 1 to 0, or to 0.9: no p is below 1/16."""
    numbers = np.arange(60)
    asked = np.where(numbers < greek, "el", "en")
    base = np.where(asked == "el", 1.0, 0.4)
    tuned = np.where(asked == "el", left, base + 0.3 + np.resize([0.1, -0.1, 0.05], 60))
    named = tuple(map(str, numbers))
    places = tuple((i % 4, language, name) for i, language, name in zip(numbers, asked.tolist(), named, strict=True))
    lines = ((BASE, "multilingual"), (TUNED, "multilingual"))
    found = Choice.of(Table("map@20", lines, np.array([base, tuned]), numbers % 4, named, places))
    assert found.kept.step == kept
    refused = f"pages for questions in el worse (-100.0, with too few groups to test: {greek})"
    assert (refused in str(found)) == (kept == BASE)
    assert (f" Too few groups to test for harm: el ({greek})." in str(found)) == (kept == TUNED)


def test_nothing_is_trained_where_even_perfect_scores_would_not_be_significantly_better(tmp_path, monkeypatch):
    """Three of 12 groups below 1 allow no p below 1/8; five allow 1/32."""
    scores = {count: np.where(np.arange(GROUPS) < count, 0.6 + TINY, 1.0) for count in (3, 5)}
    assert {count: table(own, own).improvable() for count, own in scores.items()} == {3: False, 5: True}
    monkeypatch.setattr(Table, "improvable", lambda self: False)
    result = ms.tune(rows(), tmp_path / "out", encoder="tiny", folds=3)
    assert {line["step"] for line in result.table} == {"base encoder", "projection"}
    assert (
        "'projection + fine-tune' was not trained: even perfect scores would not be significantly better."
        in result.report
    )
    assert "lack of time" not in result.report


def test_steps_without_time_are_named_and_nothing_is_said_of_them():
    base = np.full(GROUPS, 0.3)
    found = replace(Choice.of(table(base, base + 0.2 + TINY, base)), dropped=("maml",))
    assert "Nothing else that was tried is better." in str(found)
    assert str(found).endswith("points each. Not tried, for lack of time: maml.")


def test_changes_are_shown_by_language_and_side_and_by_question():
    """Without a page in another language, five questions have no score of that side."""
    base = np.full(GROUPS, 0.3)
    some = np.where(np.arange(GROUPS) < 5, np.nan, 0.2)
    found = Choice.of(table(base, base + 0.2 + TINY, base + TURNS, others=np.array([some, some + 0.3, some])))
    assert [(each.language, each.side, each.questions) for each in found.changes] == [
        ("en", "", 12),
        ("en", "others", 7),
    ]
    assert [each.gain.mean for each in found.changes] == pytest.approx([0.2 + TINY.mean(), 0.3])
    assert [each.place[2] for each in found.moved] == [str(i) for i in reversed(range(GROUPS))]


def test_shuffled_labels_give_each_group_the_answers_of_another_one():
    train = Labels.of(load_labels(rows()), 4).hold_out(0).split.train
    group_of = {question.id: question.group for question in train.questions}
    turned = shuffled(train, 0)
    pairs = {(each.group, group_of[uid]) for each in turned.candidates for uid in each.answers}
    assert len(pairs) == 9  # of twelve groups, three are held out
    assert all(own != other for own, other in pairs)
    assert sorted(own for own, _ in pairs) == sorted(other for _, other in pairs)
    assert [len(each.answers) for each in turned.candidates] == [len(each.answers) for each in train.candidates]
    assert shuffled(train, 1) != turned == shuffled(train, 0)


def test_a_control_trains_as_its_step_does():
    fold = Labels.of(load_labels(rows()), 4).hold_out(0)
    (_, recipe), (trained, control) = prepare(TUNED, fold, "tiny"), prepare(TUNED.control, fold, "tiny")
    assert recipe == control
    assert trained.split.test == fold.split.test
    assert Step.named(str(TUNED.control)) == TUNED.control


class Told:
    """An encoder that finds the answer to the question about a thing for things of its own, else nothing."""

    def __init__(self, device, known):
        self.device, self.known = device, known

    def encode(self, texts, role):
        found = np.full((len(texts), 13), 0.01, np.float32)
        for row, text in enumerate(texts):
            thing = int(text.split("K")[1].split("?")[0].split(" ")[0])
            found[row, thing if thing in self.known else 12] = 1.0
        return found


@pytest.mark.parametrize(("learned", "kept"), [(range(0, 12, 2), True), (range(12), False)])
def test_a_tuning_runs_the_control_of_the_step_that_it_would_keep(tmp_path, monkeypatch, learned, kept):
    """Training finds all answers. A control that finds as many leaves the base encoder, which finds six."""

    def score(self, step, benchmark, ranked, callback):
        known = (learned if step.shuffled else range(12)) if step.learner else () if step.shuffled else range(0, 12, 2)
        encoder = Told(self.encoder.device, {*known})
        return {pool: evaluate(encoder, benchmark.split.test, benchmark.measures, [pool]) for pool in ranked}

    monkeypatch.setattr(training, "_MOST_EPISODES", 1)
    monkeypatch.setattr(Workshop, "score", score)
    result = ms.tune(rows(), tmp_path / "out", encoder="tiny")
    assert bool(result.choice.kept.step.learner) == kept
    assert '"projection + fine-tune, shuffled labels"' in (tmp_path / "out/results.jsonl").read_text()
    assert result.report.splitlines()[2].startswith("Only labelled texts were searched, which flatters")
    assert ("Questions that gained" in result.report) == kept
