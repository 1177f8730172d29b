"""Learning curves of a study: the dev score over outer steps, and each term of the loss."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from metasearch.reports.charts.chart import Chart
from metasearch.reports.charts.line import Look, Points, Series, finite, line_chart
from metasearch.reports.table import Cell, Line, Table
from metasearch.study.arms import Arm
from metasearch.study.study import Study

# More points than this on a line nobody sees, but the file would grow by megabytes.
_POINTS = 120
# More arms than this in one picture nobody can tell apart.
_TOGETHER = 5
_NOT_TERMS = ("step", "total", "phase", "grad", "lr")
# Pixels of the picture of a loss term.
_PANEL, _PANEL_HIGH = 360.0, 130.0


@dataclass
class History:
    """What the runs of an arm logged.

    Attributes:
        arm: of the runs.
        dev: step and dev score of each run.
        losses: (term, phase) → step → values of the runs that reached it.
    """

    arm: Arm
    dev: list[Points] = field(default_factory=list)
    losses: dict[tuple[str, str], dict[int, list[float]]] = field(default_factory=dict)


def history(arm: Arm, runs: Iterable[Iterable[Mapping[str, Any]]]) -> History:
    """Return what the runs of an arm logged.

    Args:
        arm: of the runs.
        runs: events of each, as `Run.events` returns them.
    """
    made = History(arm)
    for events in runs:
        dev = []
        for event in events:
            step = int(event["step"])
            if "dev" in event:
                dev += [(float(step), float(event["dev"]))] if _number(event["dev"]) else []
            elif "loss" in event:
                for term, value in event.items():
                    if term not in _NOT_TERMS and _number(value):
                        at = made.losses.setdefault((term, str(event.get("phase", ""))), {})
                        at.setdefault(step, []).append(float(value))
        made.dev.append(finite(dev))
    return made


def histories(study: Study) -> list[History]:
    """Return what the runs of each trained arm logged; a log is read once, and let go before the next one."""
    trained = [arm for arm in study.arms if not arm.zero_shot]
    return [history(arm, (scored.run.events() for scored in study.of(arm))) for arm in trained]


def curves(study: Study) -> list[Chart]:
    """Return the chart of dev scores, and one of the loss terms of each trained arm; without values there is none."""
    found = histories(study)
    scores = [h for h in found if any(h.dev)]
    return [*([dev_chart(scores)] if scores else []), *(loss_chart(i, h) for i, h in enumerate(found) if h.losses)]


def mean_of(runs: Sequence[Points]) -> Points:
    """Return the mean of runs at the steps that all of them have, so that it never jumps where a run stops early."""
    values = [dict(run) for run in runs if run]
    shared = sorted(set.intersection(*(set(run) for run in values))) if values else []
    return tuple((step, sum(run[step] for run in values) / len(values)) for step in shared)


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of each value and its neighbours, fewer of them at the ends.

    Args:
        values: (n,).
        window: how many values are taken together; odd.
    """
    ones = np.ones(window)
    half = window // 2
    whole = slice(half, half + len(values))
    return np.asarray(np.convolve(values, ones)[whole] / np.convolve(np.ones(len(values)), ones)[whole])


def thinned(points: Points, most: int = _POINTS) -> Points:
    """Return at most so many points, evenly taken, the first and the last among them."""
    if len(points) <= most:
        return points
    return tuple(points[round(i * (len(points) - 1) / (most - 1))] for i in range(most))


def dev_chart(found: Sequence[History]) -> Chart:
    """Return the chart of dev scores; where there are many arms, a picture for each learner."""
    title, name = "Dev score while learning", "dev score × 100"
    says = "{:z.2f}".format
    series = [_dev_series(h) for h in found]
    if len(found) <= _TOGETHER:
        svg = line_chart(title, _numbered(series), Look("outer step", name, says=says))
    else:
        values = [value for s in series for line in (s.points, *s.thin) for _, value in line]
        panels = []
        for learner in dict.fromkeys(h.arm.learner for h in found):
            look = Look("outer step", f"{learner}: {name}", 440, says=says, range=(min(values), max(values)))
            own = [s for s, h in zip(series, found, strict=True) if h.arm.learner == learner]
            panels.append(line_chart(f"{title}: {learner}", _numbered(own), look))
        svg = Markup("").join(panels)
    return Chart("learning-curves", title, svg, _dev_table(title, found))


def loss_chart(number: int, found: History) -> Chart:
    """Return the charts of an arm's loss terms, one picture a term.

    Args:
        number: of the arm, for the chart's key.
        found: what its runs logged.
    """
    title = f"Loss of {found.arm.label}"
    terms = list(dict.fromkeys(term for term, _ in found.losses))
    if terms[:1] == ["loss"] and len(terms) == 2:
        terms = terms[:1]  # the one term is the loss
    phases = list(dict.fromkeys(phase for _, phase in found.losses))
    raw = {
        (term, phase): finite((float(step), sum(values) / len(values)) for step, values in sorted(steps.items()))
        for term in terms
        for phase in phases
        if (steps := found.losses.get((term, phase)))
    }
    panels = [
        line_chart(
            f"{title}: {term}",
            [_smooth(phase, raw[term, phase], i) for i, phase in enumerate(phases) if (term, phase) in raw],
            Look("outer step", term, _PANEL, _PANEL_HIGH),
        )
        for term in terms
    ]
    lines = tuple(_loss_line(term, phase, points) for (term, phase), points in raw.items())
    columns = ("first", "last", "lowest", "at step")
    table = Table(f"loss-{number}", title, ("term", "phase"), columns, lines, _loss_notes(found, raw.values()))
    return Chart(table.key, title, Markup("").join(panels), table)


def _dev_series(found: History) -> Series:
    """Return the mean of an arm's dev scores × 100, and where there are several runs, each of them as a thin line."""
    mean, *runs = (tuple((step, 100 * value) for step, value in line) for line in (mean_of(found.dev), *found.dev))
    return Series(found.arm.label, thinned(mean), tuple(map(thinned, runs)) if len(runs) > 1 else ())


def _numbered(series: Iterable[Series]) -> list[Series]:
    return [replace(s, number=i) for i, s in enumerate(series)]


def _window(steps: int) -> int:
    """Return over how many steps a term is smoothed: about a tenth of them, an odd number."""
    return max(1, steps // 10) | 1


def _smooth(label: str, raw: Points, number: int) -> Series:
    """Return the running mean of a term, and the values themselves as thin lines that stop where another phase is."""
    window = _window(len(raw))
    mean = running_mean(np.array([value for _, value in raw]), window)
    points = tuple((step, float(value)) for (step, _), value in zip(raw, mean, strict=True))
    return Series(label or "loss", thinned(points), _pieces(thinned(raw)) if window > 1 else (), number)


def _pieces(points: Points) -> tuple[Points, ...]:
    """Return points in pieces, cut where a gap is much wider than it is in the middle."""
    steps = np.array([step for step, _ in points])
    gaps = np.diff(steps)
    cuts = [0, *(np.flatnonzero(gaps > 3 * np.median(gaps)) + 1).tolist(), len(points)]
    return tuple(points[start:end] for start, end in pairwise(cuts))


def _loss_line(term: str, phase: str, raw: Points) -> Line:
    at, lowest = min(raw, key=lambda point: point[1])
    values = tuple(Cell(value, text=f"{value:.4g}") for value in (raw[0][1], raw[-1][1], lowest))
    return Line((term, phase), (*values, Cell(at, text=f"{at:.0f}")))


def _loss_notes(found: History, raw: Iterable[Points]) -> tuple[str, ...]:
    """Return what the lines are."""
    lengths = [len(points) for points in raw]
    windows = sorted({_window(steps) for steps in lengths})
    runs = [f"Mean over the runs that reached a step, {len(found.dev)} at the start."] if len(found.dev) > 1 else []
    if windows == [1]:
        return (*runs, "Nothing is smoothed.")
    spans = " or ".join(map(str, windows))
    smooth = f"Thick: running mean over {spans} steps of a phase. Thin: the steps themselves."
    drawn = [f"At most {_POINTS} points of a line are drawn."] if max(lengths) > _POINTS else []
    return (*runs, smooth, *drawn)


def _dev_table(title: str, found: Sequence[History]) -> Table:
    """Return the mean dev score of each arm at its first and last step and where it is best."""
    lines = []
    for h in found:
        mean = mean_of(h.dev)
        best = max(mean, key=lambda point: point[1], default=None)
        cells = [Cell(mean[0][1]), Cell(mean[-1][1]), Cell(best[1])] if best else [Cell(text="–")] * 3
        steps = [Cell(text=f"{best[0]:.0f}"), Cell(text=f"{mean[-1][0]:.0f}")] if best else [Cell(text="–")] * 2
        lines.append(Line((h.arm.label, str(len(h.dev))), (*cells, *steps)))
    note = "Thick: mean over runs, up to the last step that all of them reached. Thin: each run."
    thin = f"At most {_POINTS} points of a line are drawn."
    many = max((len(run) for h in found for run in h.dev), default=0) > _POINTS
    notes = (*([note] if any(len(h.dev) > 1 for h in found) else []), *([thin] if many else []))
    columns = ("first", "last", "best", "best at step", "last step")
    return Table("learning-curves", title, ("learner", "runs"), columns, tuple(lines), notes)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
