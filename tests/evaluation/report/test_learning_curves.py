"""Learning curves: what the runs of an arm logged, averaged and thinned."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report.sections.learning import average_runs, dev_charts, dev_scores, thinned
from metasearch.evaluation.study.arms import Arm

MAML = Arm("maml", "trans", "maml", "tiny", label="maml")


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


def test_mean_dev_scores_are_drawn_times_100_as_many_learners_in_a_chart_as_there_are_colours():
    logs = [[{"step": 0, "dev": 0.5}, {"step": 5, "dev": last}, {"step": 3, "loss": 1.0}] for last in (0.6, 0.7)]
    runs = [dev_scores(events) for events in logs]
    (chart,) = dev_charts([(MAML, runs)])
    said = ElementTree.fromstring(str(chart.svg)).find("desc").text
    assert said == "maml, 2: first 50.00, last 65.00, best 65.00, best at step 5, last step 5."
    assert [each.values.key for each in dev_charts([(MAML, runs)] * 9)] == ["learning-curves-1", "learning-curves-2"]
