"""Learning curves: dev score over outer steps, and each loss term."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from metasearch.evaluation.report.charts import Points, Series, line_chart
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.arms import Arm

ORDER = 60

# More points than this on a line nobody sees, but the file would grow by megabytes.
_POINTS = 120
# More arms than this in one picture nobody can tell apart.
_ONE_PICTURE = 5
_NOT_TERMS = ("step", "total", "phase", "grad", "lr")
_TERM_SIZE = (360.0, 130.0)


@dataclass
class History:
    """An arm's logged values: (step, dev score) per run, and losses per (term, phase) and step."""

    arm: Arm
    dev: list[Points] = field(default_factory=list)
    losses: dict[tuple[str, str], dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )


def section(inputs: Inputs) -> Section | None:
    """Return dev scores and loss terms over outer steps; None where nothing was trained."""
    trained = [arm for arm in inputs.study.arms if not arm.zero_shot]
    # A log is read once, and let go before the next one.
    histories = [history(arm, (each.run.events() for each in inputs.study.of(arm))) for arm in trained]
    scores = [h for h in histories if any(h.dev)]
    charts = [loss_chart(number, h) for number, h in enumerate(histories) if h.losses]
    charts = [*([dev_chart(scores)] if scores else []), *charts]
    tables = tuple(chart.values for chart in charts)
    return Section("learning", "Learning curves", charts=tuple(charts), tables=tables) if charts else None


def history(arm: Arm, runs: Iterable[Iterable[Mapping[str, Any]]]) -> History:
    """Return an arm's logged values from each run's events, as returned by `Run.events`."""
    made = History(arm)
    for events in runs:
        dev = []
        for event in events:
            step, phase = int(event["step"]), str(event.get("phase", ""))
            if "dev" in event:
                dev += [(float(step), float(event["dev"]))] if _is_number(event["dev"]) else []
            elif "loss" in event:
                for term, value in event.items():
                    if term not in _NOT_TERMS and _is_number(value):
                        made.losses[term, phase][step].append(float(value))
        made.dev.append(tuple(dev))
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def thinned(points: Points, most: int = _POINTS) -> Points:
    """Return at most so many points, evenly taken, the first and the last among them."""
    if len(points) <= most:
        return points
    return tuple(points[round(i * (len(points) - 1) / (most - 1))] for i in range(most))


def dev_chart(histories: Sequence[History]) -> Chart:
    """Return the chart of dev scores; where there are many arms, a picture for each learner."""
    table, name = _dev_table(histories), "dev score × 100"
    series = [_dev_series(h) for h in histories]
    if len(histories) <= _ONE_PICTURE:
        return Chart(table, line_chart(table.title, table.in_words(), series, name))
    values = [value for s in series for line in (s.points, *s.thin) for _, value in line]
    pictures = []
    for learner in dict.fromkeys(h.arm.learner for h in histories):
        own = [i for i, h in enumerate(histories) if h.arm.learner == learner]
        words = table.in_words(table.lines[i] for i in own)
        title = f"{table.title}: {learner}"
        pictures.append(line_chart(title, words, [series[i] for i in own], f"{learner}: {name}", (440, 210), values))
    return Chart(table, Markup("").join(pictures))


def average_runs(runs: Sequence[Points]) -> Points:
    """Return the mean over runs at common steps, so it never jumps when one run stops early."""
    values = [dict(run) for run in runs if run]
    shared = sorted(set.intersection(*(set(run) for run in values))) if values else []
    return tuple((step, sum(run[step] for run in values) / len(values)) for step in shared)


def _dev_series(history: History) -> Series:
    """Return an arm's mean dev scores × 100, and each run as a thin line if there are several."""
    runs = (average_runs(history.dev), *history.dev)
    mean, *each = (thinned(tuple((step, 100 * value) for step, value in run)) for run in runs)
    return Series(history.arm.label, mean, tuple(each) if len(each) > 1 else ())


def _dev_table(histories: Sequence[History]) -> Table:
    """Return the mean dev score of each arm at its first and last step and where it is best."""
    lines = []
    for h in histories:
        mean = average_runs(h.dev)
        best = max(mean, key=lambda point: point[1], default=None)
        cells = [Cell(text="–")] * 5
        if best:
            steps = [Cell(text=f"{step:.0f}") for step in (best[0], mean[-1][0])]
            cells = [Cell(mean[0][1]), Cell(mean[-1][1]), Cell(best[1]), *steps]
        lines.append(Line((h.arm.label, str(len(h.dev))), tuple(cells)))
    notes = []
    if any(len(h.dev) > 1 for h in histories):
        notes.append("Thick: mean over runs, up to the last step that all of them reached. Thin: each run.")
    notes += _thinning(len(run) for h in histories for run in h.dev)
    columns = ("first", "last", "best", "best at step", "last step")
    heads = ("learner", "runs")
    return Table("learning-curves", "Dev score while learning", heads, columns, tuple(lines), tuple(notes))


def loss_chart(number: int, history: History) -> Chart:
    """Return an arm's loss charts, one picture per term; the arm's number is for the chart's key."""
    terms = list(dict.fromkeys(term for term, _ in history.losses))
    if terms[:1] == ["loss"] and len(terms) == 2:
        terms = terms[:1]  # the one term is the loss
    phases = list(dict.fromkeys(phase for _, phase in history.losses))
    means: dict[tuple[str, str], Points] = {
        (term, phase): tuple((float(step), sum(values) / len(values)) for step, values in sorted(steps.items()))
        for term in terms
        for phase in phases
        if (steps := history.losses.get((term, phase)))
    }
    table = Table(
        key=f"loss-{number}",
        title=f"Loss of {history.arm.label}",
        heads=("term", "phase"),
        columns=("first", "last", "lowest", "at step"),
        lines=tuple(_loss_line(term, phase, points) for (term, phase), points in means.items()),
        notes=_loss_notes(len(history.dev), [len(points) for points in means.values()]),
    )
    pictures = []
    for term in terms:
        series = [_smoothed(phase, points) for (own, phase), points in means.items() if own == term]
        words = table.in_words(line for line in table.lines if line.heads[0] == term)
        pictures.append(line_chart(f"{table.title}: {term}", words, series, term, _TERM_SIZE))
    return Chart(table, Markup("").join(pictures))


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Return the running mean `(n,)` over an odd number of neighbours, fewer at the ends."""
    ones = np.ones(window)
    # Divided by the neighbours that exist, so that the ends are not drawn towards 0.
    sums, counts = (np.convolve(each, ones) for each in (values, np.ones(len(values))))
    return (sums / counts)[window // 2 :][: len(values)]


def _window(steps: int) -> int:
    """Return over how many steps a term is smoothed: about a tenth of them, an odd number."""
    return max(1, steps // 10) | 1


def _smoothed(phase: str, points: Points) -> Series:
    """Return the running mean of a term, and the values themselves as thin lines, cut where another phase is."""
    window = _window(len(points))
    mean = running_mean(np.array([value for _, value in points]), window)
    smooth = tuple((step, float(value)) for (step, _), value in zip(points, mean, strict=True))
    return Series(phase or "loss", thinned(smooth), _pieces(thinned(points)) if window > 1 else ())


def _pieces(points: Points) -> tuple[Points, ...]:
    """Return points in pieces, cut where a gap is much wider than it is in the middle."""
    gaps = np.diff([step for step, _ in points])
    cuts = [0, *(np.flatnonzero(gaps > 3 * np.median(gaps)) + 1).tolist(), len(points)]
    return tuple(points[start:end] for start, end in pairwise(cuts))


def _loss_line(term: str, phase: str, points: Points) -> Line:
    step, lowest = min(points, key=lambda point: point[1])
    values = tuple(Cell(value, text=f"{value:.4g}") for value in (points[0][1], points[-1][1], lowest))
    return Line((term, phase), (*values, Cell(step, text=f"{step:.0f}")))


def _loss_notes(runs: int, lengths: Sequence[int]) -> tuple[str, ...]:
    """Return what the lines are."""
    windows = sorted(set(map(_window, lengths)))
    notes = [f"Mean over the runs that reached a step, {runs} at the start."] if runs > 1 else []
    if windows == [1]:
        return (*notes, "Nothing is smoothed.")
    spans = " or ".join(map(str, windows))
    notes.append(f"Thick: running mean over {spans} steps of a phase. Thin: the steps themselves.")
    return (*notes, *_thinning(lengths))


def _thinning(lengths: Iterable[int]) -> list[str]:
    return [f"At most {_POINTS} points of a line are drawn."] if max(lengths, default=0) > _POINTS else []
