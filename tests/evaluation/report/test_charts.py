"""Charts are well-formed, say their values in words, escape all text, and say where there is nothing to draw."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.charts import Estimate, Row, Series, heatmap, interval_chart, line_chart
from metasearch.evaluation.report.svg import clean
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


def matrix(*rows, diverging=False, also=()):
    """Draw a heat map of questions by candidates."""
    names = ("ar", "de", "el")
    lines = tuple(Line((name,), tuple(map(Cell, row))) for name, row in zip(names, rows, strict=False))
    table = Table("m", "t", ("Question",), names[: len(rows[0])], lines)
    return drawn(heatmap(table, "questions", "candidates", diverging, also))


# --- any text, any values ---------------------------------------------------------------------------------------------


@given(ANY, ANY, st.lists(st.tuples(st.integers(0, 50), VALUE), max_size=6))
def test_a_line_chart_is_well_formed_whatever_is_in_it(label, title, points):
    root = check(drawn(line_chart(title, label, [Series(label, tuple(sorted(points)), (tuple(points),))], label)))
    # What is read of XML has \n for any line end (XML 1.0, section 2.11), and None for an empty text.
    assert root.find("title").text == (re.sub("\r\n?", "\n", clean(title)) or None)


@given(ANY, st.lists(st.tuples(ANY, VALUE, MAYBE, MAYBE, st.booleans()), max_size=4))
def test_an_interval_chart_is_well_formed_whatever_is_in_it(text, rows):
    rows = [(label, (Estimate(*values), None), text) for label, *values in rows]
    check(intervals(rows, (text, 0.5), [text, text], text))


@given(
    ANY, st.lists(st.lists(MAYBE | st.just(math.nan), min_size=2, max_size=2), min_size=1, max_size=3), st.booleans()
)
def test_a_heat_map_is_well_formed_whatever_is_in_it(text, rows, diverging):
    lines = tuple(Line((f"{text}{i}",), tuple(map(Cell, row))) for i, row in enumerate(rows))
    check(drawn(heatmap(Table("m", text, (text,), (text, "b"), lines), text, text, diverging)))


# --- lines ------------------------------------------------------------------------------------------------------------


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


# --- languages --------------------------------------------------------------------------------------------------------


def test_a_heat_map_writes_each_value_in_its_field():
    root = matrix((0.9, 0.1), (0.5, None))
    assert {"90.0", "10.0", "50.0", "–", "ar", "de", "questions", "candidates"} <= set(texts(root))
    fields = [names[1] for names in classes(root, "rect")][:4]
    assert fields == ["q8", "q0", "q4", "none"]
    assert root.find("desc").text == (
        "Highest: 90.0, questions ar, candidates ar. Lowest: 10.0, questions ar, candidates de. "
        "Mean where both are the same: 90.0, where they are not: 30.0."
    )
