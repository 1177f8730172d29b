"""Charts are well-formed, say their values in words and escape all text; ticks stand at round values."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.charts import Estimate, Row, axis, interval_chart, line_chart
from metasearch.evaluation.report.formats import clean
from metasearch.evaluation.report.table import Cell, Line, Table

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
VALUE = st.floats(-2, 2)
MAYBE = st.none() | VALUE


def drawn(svg):
    """Return the root of one drawing; an error where it is not well-formed."""
    return ElementTree.fromstring(str(svg))


def classes(root, tag):
    """Return the classes of each element of a kind."""
    return [each.get("class").split() for each in root.iter(tag)]


def texts(root):
    """Return what is written in a drawing."""
    return [each.text for each in root.iter("text")]


def check(root):
    """Check what holds for every drawing: it has a name and a description, only known elements, finite coordinates."""
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == ["title", "desc"]
    assert {each.tag for each in root.iter()} <= {"svg", "title", "desc", "line", "rect", "path", "text"}
    for each in root.iter():
        assert not [name for name in each.attrib if name.startswith("on") or name in ("style", "href", "src")]
        for name, value in each.attrib.items():
            if name != "class":
                assert "nan" not in value, name
                assert "inf" not in value, name
    return root


def intervals(rows, reference=("zero-shot", 0.0), series=(), title="t"):
    """Draw rows of `(label, estimates, text)`, with a table of the first value of each."""
    lines = tuple(Line((label,), (Cell(estimates[0].value if estimates[0] else None),)) for label, estimates, _ in rows)
    table = Table("k", title, ("",), ("difference",), lines, scale=1.0)
    return drawn(interval_chart(table, [Row(*row) for row in rows], "difference × 100", reference, series))


# --- any text, any values ---------------------------------------------------------------------------------------------


@given(ANY, ANY, st.lists(st.tuples(st.integers(0, 50), VALUE), min_size=1, max_size=6))
def test_a_line_chart_is_well_formed_whatever_is_in_it(label, title, points):
    table = Table("k", title, ("",), ("last",), (Line((label,), (Cell(text=label),)),))
    root = check(drawn(line_chart(table, [(label, tuple(sorted(points)))] * 2, label)))
    # What is read of XML has \n for any line end (XML 1.0, section 2.11), and None for an empty text.
    assert root.find("title").text == (re.sub("\r\n?", "\n", clean(title)) or None)


@given(ANY, st.lists(st.tuples(ANY, VALUE, MAYBE, MAYBE, st.booleans()), min_size=1, max_size=4))
def test_an_interval_chart_is_well_formed_whatever_is_in_it(text, rows):
    rows = [(label, (Estimate(*values), None), text) for label, *values in rows]
    check(intervals(rows, (text, 0.5), [text, text], text))


# --- intervals --------------------------------------------------------------------------------------------------------


def places(root, axis):
    """Return where the markers stand: 0 from left to right, 1 from above."""
    markers = (each for each in root.iter("path") if "marker" in each.get("class").split())
    return [float(re.findall(r"[-\d.]+", each.get("transform"))[axis]) for each in markers]


def lines(root, css):
    return (each for each in root.iter("line") if each.get("class") == css)


def test_values_stand_at_their_places_with_the_ends_of_their_intervals_and_the_reference():
    root = intervals(
        [("a", (Estimate(2.0, 1.0, 3.0),), "+2.00 [1.00, 3.00]*"), ("b", (Estimate(-4.0, hollow=True),), "")]
    )
    at_2, at_minus_4 = places(root, 0)
    low, high = (float(next(each.get(x) for each in lines(root, "interval c0"))) for x in ("x1", "x2"))
    reference = float(next(each.get("x1") for each in lines(root, "reference")))
    assert (low + high) / 2 == pytest.approx(at_2, abs=0.1)
    assert [float(each.get("x1")) for each in lines(root, "interval c0")] == [low, low, high]  # bar, and its ends
    assert (high - low) / (at_2 - reference) == pytest.approx((3 - 1) / 2, abs=0.01)
    assert (at_2 - reference) / (reference - at_minus_4) == pytest.approx(2 / 4, abs=0.01)
    assert [names[2:] for names in classes(root, "path")] == [[], ["hollow"]]
    assert {"a", "+2.00 [1.00, 3.00]*", "zero-shot", "difference × 100"} <= set(texts(root))
    assert root.find("desc").text == "a: difference 2.00. b: difference -4.00."


# --- axes -------------------------------------------------------------------------------------------------------------


SOME = st.lists(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6), min_size=1, max_size=9)


@given(SOME, st.integers(2, 12))
def test_an_axis_holds_all_values_with_round_ticks_evenly_spaced(values, count):
    made = axis(values, 0, 100, count)
    step = made.ticks[1] - made.ticks[0]
    slack = 1e-6 * step
    assert made.ticks[0] <= min(values) + slack
    assert made.ticks[-1] >= max(values) - slack
    assert round(step / 10.0 ** math.floor(math.log10(step) + 1e-6)) in (1, 2, 5)
    for left, right in zip(made.ticks, made.ticks[1:], strict=False):
        assert right - left == pytest.approx(step, rel=1e-4)
    assert 2 <= len(made.ticks) <= 2 * count + 3
    labels = [made.label(tick) for tick in made.ticks]
    assert len(set(labels)) == len(labels)
    assert [float(label.replace("−", "-")) for label in labels] == pytest.approx(list(made.ticks), abs=step / 100)
