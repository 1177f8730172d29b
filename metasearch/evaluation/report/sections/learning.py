"""Learning curves: dev score over outer steps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from metasearch.evaluation.report.charts import COLOURS, Points, line_chart
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.arms import Arm

ORDER = 60
_POINTS = 120
"""Points of a line that are drawn, at most."""

Curves = list[tuple[Arm, list[Points]]]
"""Each arm with the dev scores of its runs."""


def section(inputs: Inputs) -> Section | None:
    """Return dev scores over outer steps; None without any."""
    study = inputs.study
    curves = [
        (arm, [dev_scores(each.run.events()) for each in study.of(arm)]) for arm in study.arms if not arm.zero_shot
    ]
    charts = dev_charts([(arm, runs) for arm, runs in curves if average_runs(runs)])
    return Section("learning", "Learning curves", (), charts, tuple(c.values for c in charts)) if charts else None


def dev_scores(events: Iterable[Mapping[str, Any]]) -> Points:
    """Return step and dev score of the events of a run."""
    scores = ((event["step"], event["dev"]) for event in events if isinstance(event.get("dev"), int | float))
    return tuple((float(step), float(score)) for step, score in scores if math.isfinite(score))


def dev_charts(curves: Curves) -> tuple[Chart, ...]:
    """Return the charts of mean dev scores, as many arms in each as there are colours."""
    charts = []
    for start in range(0, len(curves), COLOURS):
        part = curves[start : start + COLOURS]
        table = _table(part, "learning-curves" + f"-{start // COLOURS + 1}" * (len(curves) > COLOURS))
        means = [(arm.label, [(step, 100 * score) for step, score in average_runs(runs)]) for arm, runs in part]
        series = [(label, thinned(tuple(points))) for label, points in means]
        charts.append(Chart(table, line_chart(table, series, "dev score × 100")))
    return tuple(charts)


def _table(curves: Curves, key: str) -> Table:
    """Return each arm's mean dev score at its first and last step and where it is best."""
    lines = []
    for arm, runs in curves:
        mean = average_runs(runs)
        best = max(mean, key=lambda point: point[1])
        scores = (Cell(score) for score in (mean[0][1], mean[-1][1], best[1]))
        steps = (Cell(text=f"{step:.0f}") for step in (best[0], mean[-1][0]))
        lines.append(Line((arm.label, str(len(runs))), (*scores, *steps)))
    columns = ("first", "last", "best", "best at step", "last step")
    notes = ("Mean over runs, up to the last step that all of them reached.",)
    return Table(key, "Dev score while learning", ("learner", "runs"), columns, tuple(lines), notes)


def average_runs(runs: Sequence[Points]) -> Points:
    """Return the mean over runs at common steps, so it never jumps when one run stops early."""
    values = [dict(run) for run in runs if run]
    shared = sorted(set.intersection(*(set(run) for run in values))) if values else []
    return tuple((step, sum(run[step] for run in values) / len(values)) for step in shared)


def thinned(points: Points, most: int = _POINTS) -> Points:
    """Return at most so many points, evenly taken, the first and the last among them."""
    if len(points) <= most:
        return points
    return tuple(points[round(i * (len(points) - 1) / (most - 1))] for i in range(most))
