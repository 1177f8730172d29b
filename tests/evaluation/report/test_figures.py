"""Charts of scores in a report: which are drawn from which runs, with ticks at round values."""

import math
from itertools import pairwise
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.studies import write_study
from helpers.tables import study_of
from metasearch.config import yaml
from metasearch.evaluation.report.build import build
from metasearch.evaluation.report.section import Chart, Inputs, Row, round_ticks
from metasearch.evaluation.report.sections import figures
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.study.read import read_study, unseen_languages


def inputs_of(study):
    return Inputs(study, study.select(), None)


def values_of(chart):
    return {row.label: row.value for row in chart.rows}


def written(folder, settings):
    """Write a study of zero-shot and maml with settings of the recipe; return its folder."""
    write_study(folder, folds=(0,), questions=4)
    file = folder / "cells" / "maml" / "fold-0-seed-0" / "config.yaml"
    tree = yaml.tree(file)
    for key, value in settings.items():
        place = tree["config"]["recipe"]
        *above, last = key.split(".")
        for name in above:
            place = place[name]
        place[last] = value
    file.write_text(yaml.dump(tree), encoding="utf-8")
    return folder


def test_scores_by_language_are_means_over_folds_with_their_deviation():
    scores = {("maml", "trans", fold, 0): {"de": 0.1 + 0.2 * fold, "el": 0.5} for fold in (0, 1)}
    figure = figures.by_language(inputs_of(study_of(scores)))
    assert values_of(figure) == pytest.approx({"de: maml": 0.2, "el: maml": 0.5})
    de, spread = figure.rows[0], stdev([0.1, 0.3])
    (interval,) = de.intervals
    assert (interval.low, interval.high) == pytest.approx((0.2 - spread, 0.2 + spread))
    assert de.text == f"20.00 ± {100 * spread:.2f}"


def test_a_star_marks_languages_that_no_training_has_seen(tmp_path):
    """The mode trans of the embedded benchmark trains on ar, de, el and hi."""
    study = read_study([write_study(tmp_path / "study", folds=(0,), questions=4, languages=("de", "ru"))])
    figure = figures.by_language(inputs_of(study))
    assert list(values_of(figure)) == ["de: zero-shot", "de: maml", "ru*: zero-shot", "ru*: maml"]
    assert figure.notes[0] == "*: language without training."


def test_a_pair_is_unseen_with_one_unseen_language():
    task = {"languages": ["ar", "en", "es"], "pairs": ["ar-en", "en-en", "es-en"]}
    task["arrangements"] = {"mono -> bi": ["en_en -> en_ar"], "bi -> multi": ["en_es -> en_{ar,es}"]}
    mode = {"meta_train": ["mono -> bi"], "meta_valid": ["mono -> bi"]}
    assert unseen_languages({"data": {"task": task}, "mode": mode}) == {"es", "es-en"}
    assert unseen_languages({"data": {"task": "lareqa"}, "mode": "trans"}) == frozenset()


def test_scores_by_mode_are_drawn_where_a_learner_has_two():
    scores = {("zero-shot", None, 0, 0): {"de": 0.1}, ("maml", "trans", 0, 0): {"de": 0.2}}
    assert figures.by_mode(inputs_of(study_of(scores))) is None
    scores |= {("maml", "mono-bi", 0, 0): {"de": 0.3}, ("fine-tune", "trans", 0, 0): {"de": 0.4}}
    figure = figures.by_mode(inputs_of(study_of(scores)))
    assert values_of(figure) == {
        **{"mono-bi: zero-shot": 0.1, "mono-bi: maml": 0.3},
        **{"trans: zero-shot": 0.1, "trans: maml": 0.2, "trans: fine-tune": 0.4},
    }
    assert [len(row.intervals) for row in figure.rows] == [1, 2, 1, 2, 3]  # which is the colour of a learner


@pytest.mark.parametrize(
    ("key", "values", "shown"),
    [
        ("episodes.negatives", ("random", "hard"), ("hard", "random")),
        ("episodes.k", (16, 2), ("2", "16")),
        ("labels", (None, 8), ("8", "all")),
    ],
)
def test_scores_by_a_setting_are_drawn_where_learners_differ_in_it_alone(tmp_path, key, values, shown):
    paths = [written(tmp_path / str(value), {key: value}) for value in values]
    other = written(tmp_path / "other", {key: values[0], "outer.lr": 0.5})
    figure = figures.by_setting(inputs_of(read_study([*paths, other])), key)
    assert list(values_of(figure)) == [
        f"{group}: {name}" for group in shown for name in ("zero-shot", "maml, outer.lr=0.0003")
    ]
    assert figures.by_setting(inputs_of(read_study([paths[0], other])), key) is None


def test_the_page_says_in_one_line_what_the_other_figures_lack(tmp_path):
    study = read_study([write_study(tmp_path / "study", folds=(0,), questions=4)])
    (section,) = [each for each in build(study).sections if each.key == "figures"]
    assert [each.key for each in section.charts] == ["by-language"]
    assert section.paragraphs == (
        "Not drawn: by transfer mode (no learner has two); by episodes.queries, episodes.negatives, episodes.k, "
        "episodes.q, episodes.n_neg, labels (no two learners differ in one of these alone).",
    )


SOME = st.lists(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6), min_size=1, max_size=9)


@given(SOME, st.integers(2, 12))
def test_ticks_hold_all_values_at_round_places_evenly_spaced(values, count):
    ticks = round_ticks(values, count)
    step = ticks[1] - ticks[0]
    slack = 1e-6 * step
    assert ticks[0] <= min(values) + slack
    assert ticks[-1] >= max(values) - slack
    assert round(step / 10.0 ** math.floor(math.log10(step) + 1e-6)) in (1, 2, 5)
    for left, right in pairwise(ticks):
        assert right - left == pytest.approx(step, rel=1e-4)
    assert 2 <= len(ticks) <= 2 * count + 3
    labels = [Chart("k", "t", ()).label(tick) for tick in ticks]
    assert len(set(labels)) == len(labels)
    assert [float(label.replace("−", "-")) for label in labels] == pytest.approx(
        [100 * tick for tick in ticks], abs=step
    )


def test_a_value_stands_between_the_ticks_in_proportion_and_the_reference_is_on_the_axis():
    chart = Chart("k", "t", (Row("a", 0.02, (Interval(0.01, 0.03), None)),), reference="zero-shot")
    assert (chart.ticks[0], chart.ticks[-1]) == (0, pytest.approx(0.03))
    first, value, last = (float(chart.place(each).rstrip("%")) for each in (0, 0.02, 0.03))
    assert (value - first) / (last - first) == pytest.approx(0.02 / 0.03, abs=1e-3)
    assert 0 < first < last < 100
