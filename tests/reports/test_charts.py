"""Charts are well-formed, say their values in words, escape all text, and say where there is nothing to draw."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metasearch.reports.charts.curves import dev_chart, history, loss_chart, mean_of, running_mean, thinned
from metasearch.reports.charts.dots import Dots, Names, dot_chart
from metasearch.reports.charts.forest import Estimate, forest
from metasearch.reports.charts.line import Look, Series, line_chart

from metasearch.reports.charts.heatmap import Matrix, heatmap
from metasearch.reports.charts.svg import clean, shorten, width
from metasearch.study.arms import Arm

ANY = st.text(max_size=30) | st.sampled_from(
    [
        "<script>alert(1)</script>",
        '" onload="x',
        "]]>",
        "&amp;",
        "\x00\x1b",
        "\r\n \r",
        "\ud800",
        "שלום",
        "\u202eabc",
        "a" * 500,
        "ไทย",
    ]
)
VALUE = st.none() | st.floats(-2, 2) | st.sampled_from([math.nan, math.inf])
LOOK = Look("outer step", "loss")


def drawn(svg):
    """Return the root of one drawing; an error where it is not well-formed."""
    return ElementTree.fromstring(str(svg))


def panels(svg):
    """Return the roots of drawings beside each other."""
    return list(ElementTree.fromstring(f"<div>{svg}</div>"))


def classes(root, tag):
    """Return the classes of all elements of a kind."""
    return [(each.get("class") or "").split() for each in root.iter(tag)]


def texts(root):
    """Return what is written in a drawing."""
    return [each.text for each in root.iter("text")]


def check(root):
    """Check what holds for every drawing: it has a name and a description, only known elements, finite coordinates."""
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == ["title", "desc"]
    assert {each.tag for each in root.iter()} <= {"svg", "title", "desc", "line", "rect", "path", "circle", "text"}
    for each in root.iter():
        assert not [name for name in each.attrib if name.startswith("on") or name in ("style", "href", "src")]
        for name, value in each.attrib.items():
            if name != "class":
                assert "nan" not in value, name
                assert "inf" not in value, name
    return root


def arm(label="maml", learner="maml"):
    return Arm(learner, "trans", "maml", "tiny", label=label)


# --- any text, any values ---------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(ANY, ANY, st.lists(st.tuples(st.integers(0, 50), VALUE.filter(lambda v: v is not None)), max_size=6))
def test_a_line_chart_is_well_formed_whatever_is_in_it(label, title, points):
    root = check(drawn(line_chart(title, [Series(label, tuple(sorted(points)), (tuple(points),))], LOOK)))
    # What is read of XML has \n for any line end (XML 1.0, section 2.11), and None for an empty text.
    assert root.find("title").text == (re.sub("\r\n?", "\n", clean(title)) or None)


@settings(max_examples=40)
@given(ANY, st.lists(st.tuples(ANY, st.floats(-2, 2) | st.just(math.nan), VALUE, VALUE), max_size=4))
def test_a_forest_plot_is_well_formed_whatever_is_in_it(title, rows):
    check(drawn(forest("f", title, [Estimate(*row, mark="*") for row in rows], title).svg))


@settings(max_examples=40)
@given(ANY, st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=4))
def test_a_dot_chart_is_well_formed_whatever_is_in_it(text, values):
    dots = Dots(text, tuple(v for v, _ in values), tuple(s for _, s in values))
    check(drawn(dot_chart(Names("d", text, text, text), [text] * len(values), [dots, dots], (text, 0.5)).svg))


@settings(max_examples=40)
@given(ANY, st.lists(st.lists(VALUE, min_size=2, max_size=2), min_size=1, max_size=3), st.booleans())
def test_a_heat_map_is_well_formed_whatever_is_in_it(text, rows, diverging):
    values = tuple(map(tuple, rows))
    names = tuple(f"{text}{i}" for i in range(len(rows)))
    check(drawn(heatmap(Matrix("m", text, text, text, names, (text, "b"), values, diverging=diverging)).svg))


@settings(max_examples=40)
@given(ANY, st.floats(0, 400))
def test_a_shortened_text_is_no_wider_than_asked_and_on_one_line(text, pixels):
    short = shorten(text, pixels)
    assert short in ("…", "") or width(short) <= pixels
    assert len(short.splitlines()) <= 1


# --- lines ------------------------------------------------------------------------------------------------------------


def test_a_line_chart_has_a_line_for_each_series_and_thin_ones_below_them():
    run = ((0.0, 1.0), (5.0, 2.0))
    root = drawn(line_chart("t", [Series("a", run, (run, run)), Series("b", run, (), 1)], LOOK))
    css = classes(root, "path")
    assert sum("thin" in names for names in css) == 2
    assert sum("mean" in names for names in css) == 2
    assert {"a", "b", "outer step", "loss"} <= set(texts(root))


def test_series_differ_without_colour_in_dashes_and_marker():
    root = drawn(line_chart("t", [Series("a", ((0, 1), (1, 2))), Series("b", ((0, 2), (1, 3)), (), 1)], LOOK))
    dashes = {name for names in classes(root, "path") for name in names if name[0] == "d"}
    assert dashes == {"d0", "d1"}
    assert len({each.get("d") for each in root.iter("path") if "marker" in each.get("class").split()}) == 2


def test_a_line_chart_says_its_values_in_words():
    words = drawn(line_chart("t", [Series("maml", ((0, 0.5), (10, 0.75), (20, 0.625)))], LOOK)).find("desc").text
    assert words == "maml: from 0.5 at 0 to 0.625 at 20, highest 0.75 at 10."


def test_one_point_is_a_marker():
    root = drawn(line_chart("t", [Series("a", ((3, 1.0),))], LOOK))
    assert classes(root, "path") == [["marker", "c0"]]
    assert root.find("desc").text == "a: 1 at 3."


@pytest.mark.parametrize("series", [[], [Series("a", ())], [Series("a", ((1, math.nan),))]])
def test_a_line_chart_without_values_says_so(series):
    assert texts(drawn(line_chart("t", series, LOOK))) == ["There are no values to draw."]


# --- learning curves --------------------------------------------------------------------------------------------------


def steps(losses, phase="meta-train"):
    return [
        {"step": i + 1, "phase": phase, "loss": value, "task": value, "grad": 1.0} for i, value in enumerate(losses)
    ]


def test_the_mean_goes_as_far_as_all_runs_do():
    runs = [((0, 0.2), (5, 0.4), (10, 0.9)), ((0, 0.4), (5, 0.8))]
    assert mean_of(runs) == ((0, pytest.approx((0.2 + 0.4) / 2)), (5, pytest.approx((0.4 + 0.8) / 2)))
    assert mean_of([]) == mean_of([()]) == ()


def test_a_running_mean_takes_fewer_values_at_the_ends():
    assert running_mean(np.array([1.0, 2.0, 6.0, 3.0]), 3) == pytest.approx([3 / 2, 9 / 3, 11 / 3, 9 / 2])
    assert running_mean(np.array([1.0]), 1) == pytest.approx([1.0])


@given(st.integers(0, 500), st.integers(2, 50))
def test_thinned_points_keep_both_ends_and_their_order(count, most):
    points = tuple((float(i), float(i)) for i in range(count))
    kept = thinned(points, most)
    assert len(kept) == min(count, most)
    assert (kept[:1], kept[-1:]) == (points[:1], points[-1:])
    assert list(kept) == sorted(set(kept))


def test_dev_scores_are_drawn_times_100_each_run_thin_and_the_mean_thick():
    runs = [[{"step": 0, "dev": 0.5}, {"step": 5, "dev": 0.6}], [{"step": 0, "dev": 0.5}, {"step": 5, "dev": 0.7}]]
    chart = dev_chart([history(arm(), runs)])
    (root,) = panels(chart.svg)
    assert root.find("desc").text == "maml: from 50.00 at 0 to 65.00 at 5, highest 65.00 at 5."
    assert sum("thin" in names for names in classes(root, "path")) == 2
    assert [chart.values.shown(cell) for cell in chart.values.lines[0].cells] == ["50.00", "65.00", "65.00", "5", "5"]


def test_many_arms_have_a_picture_for_each_learner():
    run = [[{"step": 0, "dev": 0.5}, {"step": 5, "dev": 0.6}]]
    found = [history(arm(f"{learner} {i}", learner), run) for learner in ("maml", "reptile") for i in range(3)]
    chart = dev_chart(found)
    assert [root.find("title").text.split(": ")[1] for root in panels(chart.svg)] == ["maml", "reptile"]
    assert len(chart.values.lines) == 6


def test_a_loss_of_one_term_has_one_picture_and_of_two_three():
    two = [{"step": 1, "phase": "meta-train", "loss": 1.5, "task": 1.0, "kd": 0.5, "grad": 2.0, "lr": 1.0}]
    assert len(panels(loss_chart(0, history(arm(), [steps([3.0, 2.0])])).svg)) == 1
    assert len(panels(loss_chart(0, history(arm(), [two])).svg)) == 3


def test_losses_are_averaged_over_the_runs_that_reached_a_step():
    found = history(arm(), [steps([4.0, 2.0, 1.0]), steps([2.0, 1.0])])
    assert found.losses["loss", "meta-train"] == {1: [4.0, 2.0], 2: [2.0, 1.0], 3: [1.0]}
    table = loss_chart(0, found).values
    assert [table.shown(cell) for cell in table.lines[0].cells] == [f"{(4 + 2) / 2:g}", "1", "1", "3"]


def test_a_smoothed_loss_says_so_and_shows_the_steps_themselves():
    long, short = (loss_chart(0, history(arm(), [steps(np.linspace(1, 0, n).tolist())])) for n in (50, 5))
    assert "running mean over 5 steps" in " ".join(long.values.notes)
    assert long.svg.count('class="thin') == 1
    assert short.values.notes == ("Nothing is smoothed.",)
    assert short.svg.count('class="thin') == 0


def test_phases_are_two_lines_and_thin_ones_stop_between():
    events = [*steps([1.0] * 30), *({**e, "step": e["step"] + 100} for e in steps([0.5] * 30))]
    other = [{**e, "step": e["step"] + 40, "phase": "meta-valid"} for e in steps([0.8] * 30)]
    (root,) = panels(loss_chart(0, history(arm(), [events + other])).svg)
    assert sum("mean" in names for names in classes(root, "path")) == 2
    assert sum("thin" in names for names in classes(root, "path")) == 2 + 1
    assert {"meta-train", "meta-valid"} <= set(texts(root))


def test_events_that_are_no_numbers_are_left_out():
    events = [
        {"step": 1, "phase": "a", "loss": "x"},
        {"step": 2, "dev": None},
        {"step": 3, "dev": math.nan},
        {"step": 4},
    ]
    found = history(arm(), [events])
    assert (found.dev, found.losses) == ([()], {})


# --- differences, modes, languages ------------------------------------------------------------------------------------


def test_a_forest_plot_has_full_markers_where_the_interval_excludes_0():
    rows = [Estimate("a", 0.02, 0.01, 0.03, "*"), Estimate("b", 0.02, -0.01, 0.05), Estimate("c", -0.02, -0.03, -0.01)]
    chart = forest("f", "t", rows, "difference × 100")
    root = drawn(chart.svg)
    assert [names[0] for names in classes(root, "circle")] == ["full", "hollow", "full"]
    assert "+2.00 [1.00, 3.00]*" in texts(root)
    assert root.find("desc").text.startswith("difference × 100. a: +2.00 [1.00, 3.00]*. b: +2.00 [−1.00, 5.00].")
    assert [cell.value for cell in chart.values.lines[0].cells] == [0.02, 0.01, 0.03]


def test_a_difference_that_is_not_known_has_a_row_without_a_marker():
    root = drawn(forest("f", "t", [Estimate("a", 0.1, None, None), Estimate("b", math.nan, 0.0, 1.0)], "d").svg)
    assert len(list(root.iter("circle"))) == 1
    assert "not known" in texts(root)


def test_nothing_to_compare_is_said():
    assert texts(drawn(forest("f", "t", [], "d").svg)) == ["There are no differences to draw."]


def test_dots_stand_higher_for_higher_means_with_their_spread():
    series = [Dots("a", (0.4, None), (0.02, None)), Dots("b", (0.6, 0.5), (None, 0.0))]
    chart = dot_chart(Names("d", "t", "mode", "map × 100"), ["mono-bi", "trans"], series, ("zero-shot", 0.55))
    root = drawn(chart.svg)
    heights = [
        float(each.get("transform").split(" ")[1].rstrip(")"))
        for each in root.iter("path")
        if "marker" in each.get("class").split()
    ][:3]
    low, *high = heights  # a, then b, in mono-bi; b in trans
    assert low > high[1] > high[0]
    assert sum("interval" in names for names in classes(root, "line")) == 1
    assert sum("reference" in names for names in classes(root, "line")) == 2  # in the plot and in the legend
    assert {"mono-", "bi", "trans", "zero-shot"} <= set(texts(root))
    assert root.find("desc").text == (
        "a: mono-bi 40.00 ± 2.00, trans –. b: mono-bi 60.00, trans 50.00. zero-shot: mono-bi 55.00, trans 55.00."
    )


def matrix(values, **kwargs):
    names = ("ar", "de", "el")[: len(values)]
    return Matrix("m", "t", "questions", "candidates", names, names[: len(values[0])], values, **kwargs)


def test_a_heat_map_writes_each_value_in_its_field():
    root = drawn(heatmap(matrix(((0.9, 0.1), (0.5, None)))).svg)
    assert {"90.0", "10.0", "50.0", "–", "ar", "de", "questions", "candidates"} <= set(texts(root))
    fields = [names[1] for names in classes(root, "rect")][:4]
    assert fields == ["q8", "q0", "q4", "none"]
    assert root.find("desc").text == (
        "Highest: 90.0, questions ar, candidates ar. Lowest: 10.0, questions ar, candidates de. "
        "Mean where both are the same: 90.0, where they are not: 30.0."
    )


def test_a_diverging_palette_has_0_in_its_middle():
    root = drawn(heatmap(matrix(((0.4, 0.0), (-0.4, -0.1)), diverging=True)).svg)
    assert [names[1] for names in classes(root, "rect")][:4] == ["v8", "v4", "v0", "v3"]
    assert {"+40.0", "+0.0", "−40.0"} <= set(texts(root))


def test_maps_beside_each_other_can_have_the_same_colours():
    root = drawn(heatmap(matrix(((0.4, 0.5), (0.5, 0.5)), also=(0.0, 0.9))).svg)
    assert classes(root, "rect")[0][1] == f"q{int(9 * 0.4 / 0.9)}"
    assert {"0.0", "90.0"} <= set(texts(root))


@pytest.mark.parametrize("diverging", [False, True])
def test_equal_values_have_the_middle_colour(diverging):
    value = 0.0 if diverging else 0.3
    root = drawn(heatmap(matrix(((value, value), (value, value)), diverging=diverging)).svg)
    assert {names[1][1] for names in classes(root, "rect")[:4]} == {"4"}


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(0, 12))
def test_a_legend_stays_inside_the_chart(length, count):
    series = [Series("w" * length, ((0, i), (1, i)), (), i) for i in range(count)]
    root = drawn(line_chart("t", series, LOOK))
    wide = float(root.get("viewBox").split()[2])
    for each in root.iter("text"):
        if each.get("text-anchor") == "start":
            assert float(each.get("x")) + width(each.text) <= wide + 1
