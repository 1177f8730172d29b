"""The table of starts on labelled pages, and pages of the Maintainers' Guide."""

import numpy as np
import pytest

from benchmarks.pages import build, start_tables
from helpers.files import write
from metasearch.search.tune.steps import ANSWERED, REMEMBERED


def test_differences_are_from_what_ships_with_each_page_as_one_cluster():
    rows = [
        {"set": name, "labels": 32, "arm": arm, "pages": [{f"p{i}": [2, 1.0 + gain + i / 10] for i in range(4)}, {}]}
        for name in ("a", "b")
        for arm, gain in ((ANSWERED, 0.2), (REMEMBERED, 0.0), ("no labels", -0.4))
    ]
    values, pages = start_tables.differences(rows, ANSWERED, REMEMBERED, start_tables.LABELLED, [32])
    np.testing.assert_allclose(values, 0.1)
    assert pages == [f"{name} p{i}" for name in "ab" for i in range(4) for _ in range(2)]
    assert start_tables.by_manual(rows, "no labels", REMEMBERED, [32]).mean == pytest.approx(-0.2)
    assert start_tables.by_manual(rows, "no labels", REMEMBERED, [32]).n == 2


def test_sections_of_the_guide_are_pages_by_their_anchors_without_their_titles(tmp_path):
    for language, title in (("en", "First steps"), ("it", "Primi passi")):
        text = f'<h2><a id="first"></a>1.1. {title}</h2><p>{30 * "text "}</p>'
        write(tmp_path / "whole/maint-guide" / language / "start.html", text)
    (pages,) = build.guide(tmp_path).values()
    assert {tag: page.title for tag, page in pages.items()} == {"en": "First steps", "it": "Primi passi"}
    assert all(page.title not in page.source for page in pages.values())
