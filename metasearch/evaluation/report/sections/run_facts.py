"""Run facts: data, versions, seeds, hardware, time and memory."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from metasearch.evaluation.report.formats import duration
from metasearch.evaluation.report.main_table import list_heads
from metasearch.evaluation.report.section import Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.study import Study
from metasearch.runs.versions import describe

ORDER = 80
_HARDWARE = {
    "processor": "Processor",
    "cores": "Cores",
    "threads": "Threads of a run",
    "system": "System",
    "device": "Device",
}
_DESCRIBED = ("fold seed", "encoder", "recipe", "labels", "neutralise", "precision", "versions")
"""Facts of `metasearch.runs.versions` that are shown; runs may differ in them."""


def section(inputs: Inputs) -> Section:
    """Return facts, time and memory for all runs."""
    tables = tuple(table for table in (fact_table(inputs.study), run_table(inputs.study)) if table)
    return Section("run-facts", "Run facts", tables=tables)


def fact_table(study: Study) -> Table:
    """Return name and value of each fact; all values, where runs differ."""
    facts = [run.facts for run in study.runs]
    described = [describe(run.config, run.rows) for run in study.runs]
    rows = {
        "Runs": str(len(study.runs)),
        **{name.capitalize(): _join(_values(described, name), "; ") for name in _DESCRIBED},
        **{shown: _join(_values(facts, name)) for name, shown in _HARDWARE.items()},
    }
    if seconds := _values(facts, "seconds"):
        rows["Time of all runs together"] = duration(sum(seconds))
    lines = tuple(Line((name,), (Cell(text=value),)) for name, value in rows.items() if value)
    notes = tuple(f"Missing: {text}." for text in study.missing)
    return Table("facts", "What was run, and on what", ("Fact",), ("Value",), lines, notes)


def run_table(study: Study) -> Table | None:
    """Return mean time and memory per arm; None without such facts."""
    lines = []
    heads, own = list_heads(study.arms)
    for arm in study.arms:
        runs = {scored.run.path: scored.run for scored in study.of(arm)}.values()
        # Every run scores zero-shot: only runs that do nothing else are its own.
        own_runs = [run for run in runs if not arm.zero_shot or run.config.get("recipe") is None]
        facts = [run.facts for run in own_runs if run.facts]
        if facts:
            known = [_values(facts, name) for name in ("seconds", "peak_memory_mib", "peak_device_memory_mib")]
            means = (fmean(values) if values else None for values in known)
            steps = _join(_values(facts, "steps"))
            lines.append(Line(own[arm], (Cell(text=str(len(facts))), Cell(text=steps), *map(Cell, means))))
    columns: tuple[str, ...] = ("Runs", "Outer steps", "Seconds", "Peak memory, MiB", "Peak device memory, MiB")
    if lines and all(line.cells[-1].value is None for line in lines):
        columns, lines = columns[:-1], [Line(line.heads, line.cells[:-1]) for line in lines]
    notes = ("Seconds and memory are means over the runs of a learner, evaluation included.",)
    return Table("runs", "Time and memory", heads, columns, tuple(lines), notes, 1.0, 1) if lines else None


def _values(trees: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [tree[name] for tree in trees if tree.get(name) is not None]


def _join(values: Iterable[Any], separator: str = ", ") -> str:
    """Return the distinct values as text, the short ones first."""
    return separator.join(sorted(set(map(str, values)), key=lambda text: (len(text), text)))
