"""Learning curves: what the runs of an arm logged, averaged, smoothed and thinned."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.sections.learning import average_runs, dev_chart, history, thinned
from metasearch.evaluation.study.arms import Arm


def panels(svg):
    """Return the roots of drawings beside each other."""
    return list(ElementTree.fromstring(f"<div>{svg}</div>"))


def count(root, name):
    """Return how many lines have a class."""
    return sum(name in each.get("class").split() for each in root.iter("path"))


def arm(label="maml", learner="maml"):
    return Arm(learner, "trans", "maml", "tiny", label=label)


def test_the_mean_goes_as_far_as_all_runs_do():
    runs = [((0, 0.2), (5, 0.4), (10, 0.9)), ((0, 0.4), (5, 0.8))]
    assert average_runs(runs) == ((0, pytest.approx((0.2 + 0.4) / 2)), (5, pytest.approx((0.4 + 0.8) / 2)))
    assert average_runs([]) == average_runs([()]) == ()


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
    assert root.find("desc").text == ("maml, 2: first 50.00, last 65.00, best 65.00, best at step 5, last step 5.")
    assert count(root, "thin") == 2
    assert [chart.values.shown(cell) for cell in chart.values.lines[0].cells] == ["50.00", "65.00", "65.00", "5", "5"]
