"""The page: one file, escaped, forbidden to load anything, with headings, captions, and colours that can be read."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import metasearch.evaluation.report.build as module
from metasearch.evaluation.report.build import environment, page
from metasearch.evaluation.report.section import Chart, Report, Row, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.jackknife import Interval

TEMPLATES = Path(module.__file__).parent / "templates"
EVIL = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style>", "{{ 1/0 }}", "&lt;", "\x00\x07",
    "\ud83d", "שלום",
]  # fmt: skip
ANY = st.text(min_size=1, max_size=30) | st.sampled_from(EVIL)
VOID = {"meta", "br", "hr", "input", "link", "img"}


class Parsed(HTMLParser):
    """Elements, text and nesting errors of a page."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text, self.errors = [], [], [], []
        self.feed(source)
        self.close()
        self.errors += self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def table(text="map@20", key="main"):
    lines = (
        Line(("zero-shot",), (Cell(0.5, 0.01, "second"), Cell(text="–"))),
        Line((text,), (Cell(0.6, None, "best", "*"), Cell(text=text)), rule=True),
    )
    return Table(key, text, (text,), ("mean", text), lines, (text,), unit="× 100")


def report(text="text"):
    rows = (
        Row(text, 0.2, (Interval(0.1, 0.3), Interval(None, None)), text),
        Row(text, -0.4, (None, Interval(None, None))),
    )
    chart = Chart("chart", text, rows, (text, text), (text,), reference=text)
    section = Section("results", text, (text,), (chart,), (table(text),))
    return Report(text, (text,), ((text, text),), (section, Section("more", text)), text)


def html_table(table):
    return str(environment().get_template("table.html.j2").module.table(table))


def squeezed(text):
    return " ".join(text.split())


@given(ANY)
def test_every_text_is_escaped_and_the_page_is_well_formed(text):
    source = page(report(text))
    parsed = Parsed(source)
    source.encode()  # a lone surrogate could not be written
    assert parsed.errors == []
    assert [tag for tag, _ in parsed.tags] == [tag for tag, _ in Parsed(page(report("plain"))).tags]
    attributes = {name for _, found in parsed.tags for name in found}
    assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset")}
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\x7f]", source)


def test_nothing_is_loaded_from_anywhere_and_no_script_may_run():
    source = page(report())
    (policy,) = [m["content"] for m in Parsed(source).all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"https?:|//|url\(|@import|src=|<link|<iframe|<object|<embed", source.replace("</", "<"))
    assert all(found["href"].startswith("#") for found in Parsed(source).all("a"))


def test_a_chart_draws_each_interval_and_its_marker_is_hollow_where_the_interval_includes_0():
    drawn = Parsed(page(report()))
    assert [found["class"] for found in drawn.all("line") if "interval" in found["class"]] == ["interval c0"]
    # Both rows, then the legend, whose markers are not hollow.
    assert [found["class"] for found in drawn.all("circle")] == ["marker c0"] * 2
    assert [found["class"] for found in drawn.all("rect")] == ["marker c1 hollow"] * 2 + ["marker c1"]
    texts = [squeezed(text) for text in drawn.text]
    ticks = ["−40", "−30", "−20", "−10", "0", "10", "20", "30"]
    assert [text for text in texts if re.fullmatch("−?[0-9]+", text)] == ticks


def test_headings_go_down_one_level_at_a_time_and_links_lead_somewhere():
    parsed = Parsed(page(report()))
    assert [tag for tag, _ in parsed.tags if re.fullmatch("h[1-6]", tag)] == ["h1", "h2", "h2"]
    ids = [found["id"] for _, found in parsed.tags if "id" in found]
    assert len(ids) == len(set(ids))
    assert {found["href"][1:] for found in parsed.all("a")} == {"content", "results", "more"}
    assert {"content", "results", "more", "chart", "main"} == set(ids)
    assert parsed.all("a")[0] == {"class": "skip", "href": "#content"}


def test_a_table_has_a_caption_and_scopes_and_shows_places_marks_and_notes():
    source = str(html_table(table()))
    parsed = Parsed(source)
    assert parsed.errors == []
    assert "map@20, × 100" in [squeezed(text) for text in parsed.text]
    assert [found["scope"] for found in parsed.all("th")] == ["col", "col", "col", "row", "row"]
    assert "<em>50.00 ± 1.00</em>" in source
    assert "<strong>60.00</strong><sup>*</sup>" in source
    assert source.count('class="note"') == 1
    assert [found.get("class") for found in parsed.all("tr")] == [None, None, "rule"]


def test_cells_are_shaded_from_the_lowest_to_the_highest_value():
    lines = (Line(("ar",), (Cell(0.1), Cell(0.5), Cell(0.9), Cell(text="–"))),)
    shaded = Table("m", "t", ("Question",), ("a", "b", "c", "d"), lines, shades=(0.1, 0.9))
    found = [td.get("class") for td in Parsed(html_table(shaded)).all("td")]
    assert found == ["q0", "q4", "q8", None]


# --- colours ----------------------------------------------------------------------------------------------------------


def palettes():
    """Return the colours of light and of dark mode by name, read from the style sheet."""
    blocks = re.findall(r":root \{(.*?)\}", (TEMPLATES / "style.css").read_text(encoding="utf-8"), re.DOTALL)
    light, dark = ("".join(blocks[mode::2]) for mode in (0, 1))
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in (light, dark)]


def luminance(colour):
    """Return the relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", palettes(), ids=["light", "dark"])
def test_texts_and_lines_have_the_contrast_of_wcag_aa(colours):
    for text in ("ink", "muted", "accent"):
        assert contrast(colours[text], colours["paper"]) >= 4.5, text
        assert contrast(colours[text], colours["raised"]) >= 4.5, text
    for line in [f"c{i}" for i in range(8)]:
        assert contrast(colours[line], colours["paper"]) >= 3, line
    for field in [f"q{i}" for i in range(9)]:
        assert contrast(colours[field], colours[f"{field}-on"]) >= 4.5, field
