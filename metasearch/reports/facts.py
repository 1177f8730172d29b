"""What a study was run with: data, versions, seeds, hardware, time and memory."""

from collections.abc import Iterable, Mapping
from typing import Any

from metasearch.reports.main_table import NO_MODE, ordered, without_mode
from metasearch.reports.table import Cell, Line, Table
from metasearch.study.arms import Arm
from metasearch.study.study import Run, Study


def fact_table(study: Study, key: str = "facts") -> Table:
    """Return name and value of what was the same, or what there was, in all runs."""
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
        **{f"Version of {name}": _listed(found) for name, found in _versions(study).items()},
        "Processor": _known(study, "processor"),
        "Cores": _known(study, "cores"),
        "Threads of a run": _known(study, "threads"),
        "System": _known(study, "system"),
        "Device": _known(study, "device"),
    }
    seconds = [run.facts["seconds"] for run in study.runs if "seconds" in run.facts]
    if seconds:
        rows["Time of all runs together"] = duration(sum(seconds))
    lines = tuple(Line((name,), (Cell(text=said),)) for name, said in rows.items() if said)
    notes = tuple(f"Missing: {said}." for said in study.missing)
    return Table(key, "What was run, and on what", ("Fact",), ("Value",), lines, notes)


def run_table(study: Study, key: str = "runs") -> Table | None:
    """Return what the runs of each arm took, the mean over them; None where no run says."""
    lines = []
    arms = ordered(study)
    moded = any(arm.mode for arm in arms)
    for arm in arms:
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
        heads = (without_mode(arm), arm.mode or NO_MODE) if moded else (arm.label,)
        lines.append(Line(heads, cells))
    columns: tuple[str, ...] = ("Runs", "Outer steps", "Seconds", "Peak memory, MiB", "Peak device memory, MiB")
    if lines and all(line.cells[-1].value is None for line in lines):
        columns, lines = columns[:-1], [Line(line.heads, line.cells[:-1]) for line in lines]
    heads = ("Learner", "Mode") if moded else ("Learner",)
    notes = ("Seconds and memory are means over the runs of a learner, evaluation included.",)
    return Table(key, "Time and memory", heads, columns, tuple(lines), notes, 1.0, 1) if lines else None


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
    found: dict[str, set[str]] = {}
    for scored in study.scored:
        for name, version in (scored.rows[0].get("versions") or {}).items():
            found.setdefault(name, set()).add(version)
    return found


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
