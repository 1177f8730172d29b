"""Adaptation: scores by the number of labelled questions that models were adapted to, of `evaluate --shots`."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from metasearch.evaluation.report.main_table import UNIT
from metasearch.evaluation.report.section import Chart, Inputs, Row, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.shots import SHOTS_FILE
from metasearch.evaluation.statistics.folds import FoldDifference, training_interval
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.evaluation.study.arms import Arm
from metasearch.runs.rows import MEAN, read_rows
from metasearch.runs.rows import Row as Score

ORDER = 35
LEVEL = 0.95


@dataclass(frozen=True)
class Point:
    """Score and gain of an arm after adaptation to so many questions, each with its interval."""

    arm: Arm
    shots: int
    score: float
    gain: float
    interval: Interval | None
    runs: int


def section(inputs: Inputs) -> Section | None:
    """Return the curve of each arm whose runs have a file of such scores; None without any."""
    points = find_points(inputs)
    if not points:
        return None
    measure = inputs.selection.measure
    notes = (
        "Mean over languages, over draws of labelled questions, and over runs; test questions without labels.",
        f"Gain: difference from 0 questions, with its {100 * LEVEL:.0f} % interval: Student's t over folds, "
        "for one fold over its seeds and questions, for one run over articles.",
    )
    heads, columns = ("learner", "labelled questions"), ("score", "gain", "from", "to", "runs")
    lines = [
        Line(
            (point.arm.label, str(point.shots)),
            (
                Cell(point.score), Cell(point.gain), Cell(point.interval.low if point.interval else None),
                Cell(point.interval.high if point.interval else None), Cell(text=str(point.runs)),
            ),
            rule=not point.shots,
        )
        for point in points
    ]  # fmt: skip
    title = f"{inputs.study.task}: {measure} by number of labelled questions, test"
    rows = [
        Row(f"{point.arm.label}, {point.shots}", point.gain, (point.interval,), f"{100 * point.gain:+.2f}")
        for point in points
        if point.shots
    ]
    charts = [Chart("shots-gains", f"Gain of {measure} by adaptation", tuple(rows), reference="no adaptation")]
    table = Table("shots-scores", title, heads, columns, tuple(lines), notes, unit=UNIT)
    return Section("shots", "Adaptation to few labels", charts=tuple(charts if rows else ()), tables=(table,))


def find_points(inputs: Inputs) -> list[Point]:
    """Return the points of all arms, from the files of their runs."""
    found: dict[tuple[Arm, int], dict[int, list[Score]]] = {}
    for arm in inputs.study.arms:
        if arm.zero_shot:
            continue
        for scored in inputs.study.of(arm):
            path = scored.run.path / SHOTS_FILE
            for row in read_rows(path) if path.is_file() else ():
                if (row["measure"], row["language"]) == (inputs.selection.measure, MEAN) and "shots" in row:
                    found.setdefault((arm, row["shots"]), {}).setdefault(scored.fold, []).append(row)
    return [_point(arm, shots, list(folds.values())) for (arm, shots), folds in found.items()]


def _point(arm: Arm, shots: int, folds: Sequence[Sequence[Score]]) -> Point:
    score, gain = (fmean(fmean(row[name] for row in own) for own in folds) for name in ("value", "gain"))
    runs = sum(map(len, folds))
    if not shots:
        return Point(arm, shots, score, gain, None, runs)
    if runs == 1:
        ((row,),) = folds
        return Point(arm, shots, score, gain, Interval(row["gain_low"], row["gain_high"]), runs)
    each = [
        FoldDifference(
            tuple(row["gain"] for row in own),
            _mean_of(own, "gain_variance"),
            _mean_of(own, "gain_df"),
            max(row["value"] for row in own),
        )
        for own in folds
    ]
    return Point(arm, shots, score, gain, training_interval(each, LEVEL), runs)


def _mean_of(rows: Sequence[Score], name: str) -> float:
    values = [row[name] for row in rows]
    return float("nan") if None in values else fmean(values)
