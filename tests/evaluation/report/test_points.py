"""Pictures of points: one scale for all of them, every text escaped, and a file that needs no page around it."""

import re
from xml.etree import ElementTree

from metasearch.evaluation.report.charts import Picture, point_chart, standalone
from metasearch.evaluation.report.svg import clean

SPACE = "{http://www.w3.org/2000/svg}"


def places(root):
    """Return the pixels of each marker in a picture, the legend's left out."""
    points = [each for each in root.iter() if "point" in each.get("class", "").split()]
    return [tuple(map(float, re.findall(r"-?[\d.]+", each.get("transform")))) for each in points]


def test_a_unit_is_as_long_in_both_directions_and_in_all_pictures():
    pictures = [Picture("one", {"de": [(2.0, 0.0), (0.0, 1.0)]}), Picture("two", {"de": [(1.0, 0.0)]})]
    right, up, other = places(ElementTree.fromstring(point_chart("t", "w", pictures)))
    centre = (up[0], right[1])
    assert (right[0] - centre[0]) / 2 == centre[1] - up[1]  # y grows downwards
    assert other[0] - (centre[0] + 300 + 24) == centre[1] - up[1]


def test_a_file_of_its_own_has_its_colours_and_nothing_of_a_page():
    file = standalone(point_chart("t", clean("w"), [Picture("one", {"de": [(1.0, 1.0)]})]))
    root = ElementTree.fromstring(file)
    assert root.tag == f"{SPACE}svg"
    style = root.find(f"{SPACE}style").text
    assert "--c0: #0b61a4" in style
    assert "--paper: #fdfdfb" in style
    assert "body {" not in style
