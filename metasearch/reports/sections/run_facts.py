"""What was run and on what: data, versions, seeds, hardware, time and memory."""

from collections.abc import Iterable, Mapping
from typing import Any

from metasearch.reports.main_table import heads_of
from metasearch.reports.section import Inputs, Section
from metasearch.reports.table import Cell, Line, Table
from metasearch.study.arms import Arm
from metasearch.study.study import Run, Study

ORDER = 80


def section(inputs: Inputs) -> Section:
    """Return the facts of all runs, and their time and memory."""
    tables = tuple(table for table in (fact_table(inputs.study), run_table(inputs.study)) if table)
    return Section("run-facts", "Run facts", tables=tables)


def fact_table(study: Study) -> Table:
    """Return name and value of each fact; all values, where runs differ."""
    rows = {
        "Task": study.task,
        "Data fingerprint": study.data,
        "Folds": _listed(study.folds),
        "Fold seed": _listed({scored.rows[0].get("fold_seed") for scored in study.scored} - {None})
        or "the task's own folds",
        "Seeds": _listed(study.seeds),
        "Encoder": _listed({row["encoder"] for scored in study.scored for row in scored.rows[:1]}),
        "Precision": _listed({run.config.get("precision") for run in study.runs} - {None}),
        "Engine": _listed({run.config.get("engine") for run in study.runs} - {None}),
        "Runs": str(len(study.runs)),
        **{f"Version of {name}": _listed(values) for name, values in _versions(study).items()},
        "Processor": _known(study, "processor"),
        "Cores": _known(study, "cores"),
        "Threads of a run": _known(study, "threads"),
        "System": _known(study, "system"),
        "Device": _known(study, "device"),
    }
    seconds = [run.facts["seconds"] for run in study.runs if "seconds" in run.facts]
    if seconds:
        rows["Time of all runs together"] = duration(sum(seconds))
    lines = tuple(Line((name,), (Cell(text=value),)) for name, value in rows.items() if value)
    notes = tuple(f"Missing: {text}." for text in study.missing)
    return Table("facts", "What was run, and on what", ("Fact",), ("Value",), lines, notes)


def run_table(study: Study) -> Table | None:
    """Return the mean time and memory of the runs of each arm; None where no run has such facts."""
    lines = []
    heads, own = heads_of(study.arms)
    for arm in study.arms:
        runs = [run for run in own_runs(study, arm) if run.facts]
        if not runs:
            continue
        cells = (
            Cell(text=str(len(runs))),
            Cell(text=_span(run.facts.get("steps") for run in runs)),
            Cell(_mean(run.facts.get("seconds") for run in runs)),
            Cell(_mean(run.facts.get("peak_memory_mib") for run in runs)),
            Cell(_mean(run.facts.get("peak_device_memory_mib") for run in runs)),
        )
        lines.append(Line(own[arm], cells))
    columns: tuple[str, ...] = ("Runs", "Outer steps", "Seconds", "Peak memory, MiB", "Peak device memory, MiB")
    if lines and all(line.cells[-1].value is None for line in lines):
        columns, lines = columns[:-1], [Line(line.heads, line.cells[:-1]) for line in lines]
    notes = ("Seconds and memory are means over the runs of a learner, evaluation included.",)
    return Table("runs", "Time and memory", heads, columns, tuple(lines), notes, 1.0, 1) if lines else None


def own_runs(study: Study, arm: Arm) -> list[Run]:
    """Return the runs that made an arm, without those that score the encoder only before they train it."""
    runs = {scored.run.path: scored.run for scored in study.of(arm)}
    return [run for run in runs.values() if not arm.zero_shot or run.config.get("recipe") is None]


def duration(seconds: float) -> str:
    """Return a time as one reads it: `8 s`, `3 min 20 s`, `2 h 18 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _versions(study: Study) -> Mapping[str, set[str]]:
    versions: dict[str, set[str]] = {}
    for scored in study.scored:
        for name, version in (scored.rows[0].get("versions") or {}).items():
            versions.setdefault(name, set()).add(version)
    return versions


def _known(study: Study, name: str) -> str:
    return _listed({run.facts[name] for run in study.runs if name in run.facts})


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, values), key=lambda text: (len(text), text)))


def _span(values: Iterable[Any]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return ""
    return str(known[0]) if known[0] == known[-1] else f"{known[0]}–{known[-1]}"


def _mean(values: Iterable[Any]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None
