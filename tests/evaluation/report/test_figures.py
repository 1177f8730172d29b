"""Figures of a report: which are drawn from which runs, and what stands where in their SVG."""

import re
from statistics import stdev
from xml.etree import ElementTree

import pytest

from helpers.studies import write_study
from helpers.tables import study_of
from metasearch.config import yaml
from metasearch.evaluation.report.build import build, drawn
from metasearch.evaluation.report.figure import COLOURS, Figure, Series, Value, split
from metasearch.evaluation.report.section import Inputs
from metasearch.evaluation.report.sections import figures
from metasearch.evaluation.study.read import read_study, unseen_languages

SVG = "{http://www.w3.org/2000/svg}"


def inputs_of(study):
    return Inputs(study, study.select(), None)


def values_of(figure):
    """Return series → group → value of a figure."""
    return {
        each.name: {group: own.value for group, own in zip(figure.groups, each.values, strict=True) if own}
        for each in figure.series
    }


def two_by_two(**ends):
    """Return a figure of two series in two groups, of which one lacks a value."""
    series = (Series("a", (Value.of(0.2, 0.1), Value.of(0.4, None))), Series("<b>", (None, Value.of(-0.1, None))))
    return Figure("key", "Title & more", ("language", "map × 100"), ("de", "el"), series, ("A note.",), **ends)


def elements(figure, tag, css=None):
    root = ElementTree.fromstring(str(drawn(figure)))
    return [each for each in root.iter(SVG + tag) if css is None or each.get("class") == css]


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


class TestDrawing:
    def test_a_bar_reaches_from_0_to_its_value_on_the_scale_of_the_ticks(self):
        figure = two_by_two()
        assert figure.ticks == pytest.approx((-0.1, 0, 0.1, 0.2, 0.3, 0.4))
        pixels = 260 / 0.5
        bars = elements(figure, "rect", "value")
        assert [float(bar.get("height")) for bar in bars] == pytest.approx([0.2 * pixels, 0.4 * pixels, 0.1 * pixels])
        zero = figure.bottom - 0.1 * pixels
        assert [float(bar.get("y")) for bar in bars] == pytest.approx([zero - 0.2 * pixels, zero - 0.4 * pixels, zero])
        assert [bar.get("fill") for bar in bars] == [COLOURS[0], COLOURS[0], COLOURS[1]]
        assert [bar[0].text for bar in bars] == ["a, de: 20.00 ± 10.00", "a, el: 40.00", "<b>, el: −10.00"]
        # Bars of a group stand side by side around its name.
        places = [float(each.get("x")) for each in elements(figure, "text", "group")]
        assert float(bars[1].get("x")) + figure.bar == pytest.approx(places[1], abs=0.11)
        assert float(bars[2].get("x")) == pytest.approx(places[1], abs=0.11)

    def test_an_interval_ends_at_its_values(self):
        figure = two_by_two()
        (whisker,) = elements(figure, "path", "interval")
        low, high = (float(each) for each in re.fullmatch(r"M\S+ (\S+)h6.*V(\S+)M.*", whisker.get("d")).groups())
        assert low - high == pytest.approx(2 * 0.1 * 260 / 0.5)

    def test_texts_are_texts_with_title_units_and_all_values_in_words(self):
        figure = two_by_two()
        texts = [each.text for each in elements(figure, "text")]
        assert {"Title & more", "a", "<b>", "de", "el", "language", "map × 100", "−10", "40", "A note."} <= {*texts}
        assert elements(figure, "title")[0].text == "Title & more"
        assert elements(figure, "desc")[0].text == "a, de: 20.00 ± 10.00; a, el: 40.00; <b>, el: −10.00"
        assert elements(figure, "svg")[0].get("aria-labelledby") == "key-title key-description"

    def test_nothing_is_drawn_outside_however_long_the_names_are(self):
        series = tuple(Series(f"a learner with settings {i}", (Value.of(0.1 * i, 0.1),) * 30) for i in range(8))
        figure = Figure("key", "t", ("x", "y"), tuple(f"group {i}" for i in range(30)), series, ("word " * 99,))
        assert all(x >= 0 and x + 7 * len(name) <= figure.width for x, _, _, name in figure.legend)
        assert all(0 <= float(bar.get("x")) <= figure.width - figure.bar for bar in elements(figure, "rect", "value"))
        assert figure.slot >= 7 * len("group 29")
        assert max(float(each.get("y")) for each in elements(figure, "text")) < figure.height

    def test_more_series_than_colours_are_drawn_in_parts_each_with_the_first(self):
        names = [str(i) for i in range(2 * len(COLOURS))]
        whole = Figure("key", "t", ("x", "y"), ("de",), tuple(Series(each, (Value.of(0.1, None),)) for each in names))
        parts = list(split(whole))
        assert [each.key for each in parts] == ["key-1", "key-2", "key-3"]
        assert [each.title for each in parts] == [f"t, part {i} of 3" for i in (1, 2, 3)]
        assert {each.series[0].name for each in parts} == {"0"}
        assert [each.name for part in parts for each in part.series[1:]] == names[1:]
        assert list(split(two_by_two())) == [two_by_two()]


class TestFigures:
    def test_scores_by_language_are_means_over_folds_with_their_deviation(self):
        scores = {("maml", "trans", fold, 0): {"de": 0.1 + 0.2 * fold, "el": 0.5} for fold in (0, 1)}
        figure = figures.by_language(inputs_of(study_of(scores)))
        assert values_of(figure) == {"maml": pytest.approx({"de": 0.2, "el": 0.5})}
        de = figure.series[0].values[0]
        assert (de.low, de.high) == pytest.approx((0.2 - stdev([0.1, 0.3]), 0.2 + stdev([0.1, 0.3])))

    def test_a_star_marks_languages_that_no_training_has_seen(self, tmp_path):
        """The mode trans of the embedded benchmark trains on ar, de, el and hi."""
        study = read_study([write_study(tmp_path / "study", folds=(0,), questions=4, languages=("de", "ru"))])
        figure = figures.by_language(inputs_of(study))
        assert figure.groups == ("de", "ru*")
        assert figure.notes[0] == "*: language without training."

    def test_a_pair_is_unseen_with_one_unseen_language(self):
        task = {"languages": ["ar", "en", "es"], "pairs": ["ar-en", "en-en", "es-en"]}
        task["arrangements"] = {"mono -> bi": ["en_en -> en_ar"], "bi -> multi": ["en_es -> en_{ar,es}"]}
        mode = {"meta_train": ["mono -> bi"], "meta_valid": ["mono -> bi"]}
        assert unseen_languages({"data": {"task": task}, "mode": mode}) == {"es", "es-en"}
        assert unseen_languages({"data": {"task": "lareqa"}, "mode": "trans"}) == frozenset()

    def test_scores_by_mode_are_drawn_where_a_learner_has_two(self):
        scores = {("zero-shot", None, 0, 0): {"de": 0.1}, ("maml", "trans", 0, 0): {"de": 0.2}}
        assert figures.by_mode(inputs_of(study_of(scores))) is None
        scores |= {("maml", "mono-bi", 0, 0): {"de": 0.3}, ("fine-tune", "trans", 0, 0): {"de": 0.4}}
        figure = figures.by_mode(inputs_of(study_of(scores)))
        assert figure.groups == ("mono-bi", "trans")
        assert values_of(figure) == {
            "zero-shot": {"mono-bi": 0.1, "trans": 0.1},
            "maml": {"mono-bi": 0.3, "trans": 0.2},
            "fine-tune": {"trans": 0.4},
        }

    @pytest.mark.parametrize(
        ("key", "values", "shown"),
        [
            ("episodes.negatives", ("random", "hard"), ("hard", "random")),
            ("episodes.k", (16, 2), ("2", "16")),
            ("labels", (None, 8), ("8", "all")),
        ],
    )
    def test_scores_by_a_setting_are_drawn_where_learners_differ_in_it_alone(self, tmp_path, key, values, shown):
        paths = [written(tmp_path / str(value), {key: value}) for value in values]
        other = written(tmp_path / "other", {key: values[0], "outer.lr": 0.5})
        figure = figures.by_setting(inputs_of(read_study([*paths, other])), key)
        assert figure.groups == shown
        assert [len(own) for own in values_of(figure).values()] == [2, 2]
        assert figure.series[0].name == "zero-shot"
        assert figures.by_setting(inputs_of(read_study([paths[0], other])), key) is None

    def test_the_page_says_in_one_line_what_the_other_figures_lack(self, tmp_path):
        study = read_study([write_study(tmp_path / "study", folds=(0,), questions=4)])
        (section,) = [each for each in build(study).sections if each.key == "figures"]
        assert [each.key for each in section.figures] == ["by-language"]
        assert section.paragraphs == (
            "Not drawn: by transfer mode (no learner has two); by episodes.queries, episodes.negatives, episodes.k, "
            "episodes.q, episodes.n_neg, labels (no two learners differ in one of these alone).",
        )
