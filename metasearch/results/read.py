"""Reads runs and studies back, and refuses to put together what does not belong together.

A *study* is a folder with `study.yaml` and a run folder for each of its cells in `cells/`; a *run* is a folder with
`config.yaml`. A cell is one arm on one fold with one seed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metasearch.data import taskfile
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.results.arms import Arm, arm_of, labelled
from metasearch.results.study import Row, Run, Scored, Study

STUDY_FILE = "study.yaml"
_NEEDED = ("task", "learner", "encoder", "split", "measure", "pool", "language", "candidates", "value", "data")


def read(paths: Sequence[Path], task: str | None = None, any_version: bool = False) -> Study:
    """Return what runs and studies have, as one.

    Args:
        paths: folders of studies and runs.
        task: which one, where the runs have scores on several.
        any_version: put together also what different versions of metasearch and its libraries made.

    Raises:
        ConfigError: the runs are of different tasks, folds or versions; the difference is named.
        DataError: the runs are on different data, or a file is damaged or foreign; file and line are named.
        RunFolderError: a path is no study and no run, or nothing in it is finished.
    """
    runs: list[Run] = []
    missing: list[str] = []
    for path in paths:
        found, unfinished = _runs(path)
        runs += found
        missing += unfinished
    rows = [(run, row) for run in runs for row in run.rows if row["task"] != "dev" and task in (None, row["task"])]
    if not rows:
        raise _nothing(paths, runs, task, missing)
    chosen = _agree(rows, any_version)
    arms, scored = _scored(rows)
    first = rows[0][1]
    return Study(
        name=", ".join(path.resolve().name for path in paths),
        task=chosen,
        data=first["data"],
        versions=first.get("versions") or {},
        arms=tuple(arms),
        scored=tuple(scored),
        runs=tuple(runs),
        missing=tuple(missing),
    )


def _runs(path: Path) -> tuple[list[Run], list[str]]:
    """Return the finished runs of a folder, and what is not finished."""
    if (path / STUDY_FILE).is_file():
        listed = taskfile.tree(path / STUDY_FILE).get("cells")
        if not isinstance(listed, list):
            raise ConfigError(f"{path / STUDY_FILE}: cells: expected a list of names")
        cells = [(path / "cells" / name, f"{path}: cell {name}") for name in listed]
        done = [cell for cell, _ in cells if (cell / "report.md").is_file()]
        missing = [f"{said} is not finished" for cell, said in cells if cell not in done]
        return [_run(cell, path.resolve().name) for cell in done], missing
    if not (path / "config.yaml").is_file():
        what = "does not exist" if not path.exists() else f"is no study and no run: no {STUDY_FILE}, no config.yaml"
        raise RunFolderError(f"{path} {what}")
    if not (path / "report.md").is_file():
        raise RunFolderError(f"{path} is not finished; go on with: metasearch train --resume {path}")
    return [_run(path, path.resolve().name)], []


def _run(path: Path, source: str) -> Run:
    config = taskfile.tree(path / "config.yaml").get("config")
    if not isinstance(config, dict):
        raise ConfigError(f"{path / 'config.yaml'}: config: this key is missing")
    facts = path / "facts.json"
    try:
        known = json.loads(facts.read_text(encoding="utf-8")) if facts.is_file() else {}
    except ValueError as error:
        raise DataError(f"{facts}: not JSON: {error}") from None
    return Run(path, source, config, tuple(_rows(path / "results.jsonl")), known)


def _rows(path: Path) -> Iterable[Row]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: not JSON: {error}. The file is cut off or damaged") from None
        lacking = [key for key in _NEEDED if key not in row] if isinstance(row, dict) else list(_NEEDED)
        if lacking and not (isinstance(row, dict) and row.get("task") == "dev"):
            raise DataError(f"{path}:{number}: not a score of metasearch: it has no {', '.join(lacking)}")
        yield row


def _nothing(paths: Sequence[Path], runs: Sequence[Run], task: str | None, missing: Sequence[str]) -> Exception:
    where = ", ".join(map(str, paths))
    known = sorted({row["task"] for run in runs for row in run.rows if row["task"] != "dev"})
    if task is not None and known:
        return ConfigError(f"{where}: no scores on task '{task}'; there are some on {', '.join(known)}")
    unfinished = f": {missing[0]}" + (f", and {len(missing) - 1} more" if missing[1:] else "") if missing else ""
    return RunFolderError(f"{where}: no finished run has scores{unfinished}")


def _agree(rows: Sequence[tuple[Run, Row]], any_version: bool) -> str:
    """Return the task; an error names the first run that differs, and how."""
    first, begun = rows[0]
    tasks = list(dict.fromkeys(row["task"] for _, row in rows))
    if len(tasks) > 1:
        raise ConfigError(f"there are scores on several tasks: {', '.join(tasks)}; choose one with --task")
    for run, row in rows:
        both = f"{first.path} and {run.path}"
        if row["data"] != begun["data"]:
            raise DataError(
                f"{both} cannot be compared: their data differs (fingerprints {begun['data']}, {row['data']})"
            )
        if row.get("fold_seed") != begun.get("fold_seed"):
            seeds = f"fold_seed {begun.get('fold_seed')} and {row.get('fold_seed')}"
            raise ConfigError(f"{both} cannot be compared: their folds are cut differently ({seeds})")
        if not any_version:
            _same_versions(both, begun.get("versions") or {}, row.get("versions") or {})
    return str(tasks[0])


def _same_versions(both: str, one: Mapping[str, str], other: Mapping[str, str]) -> None:
    for name in {**one, **other}:
        if one.get(name) != other.get(name):
            raise ConfigError(
                f"{both} cannot be compared: they were made with {name} {one.get(name)} and {other.get(name)}; "
                "--any-version compares all the same"
            )


def _scored(rows: Sequence[tuple[Run, Row]]) -> tuple[list[Arm], list[Scored]]:
    """Return the arms with their labels, and the scores of each on each fold with each seed."""
    grouped: dict[tuple[Arm, int, int, Path], list[Row]] = {}
    owner: dict[Path, Run] = {}
    for run, row in rows:
        arm = arm_of(row, run.config, run.source)
        grouped.setdefault((arm, int(row.get("fold") or 0), int(row.get("seed") or 0), run.path), []).append(row)
        owner[run.path] = run
    chosen: dict[tuple[Arm, int, int], tuple[Run, list[Row]]] = {}
    for (arm, fold, seed, path), own in grouped.items():
        if arm.zero_shot and (arm, fold, seed) in chosen:
            continue  # every run scores it, or takes it over
        clash = chosen.get((arm, fold, seed))
        key = replace(arm, source=owner[path].source) if clash and clash[0].source != owner[path].source else arm
        if (key, fold, seed) in chosen:
            raise ConfigError(
                f"{chosen[key, fold, seed][0].path} and {path} are both {arm.learner}, fold {fold}, seed {seed}"
            )
        chosen[key, fold, seed] = owner[path], own
    arms = list(dict.fromkeys(arm for arm, _, _ in chosen))
    named = dict(zip(arms, labelled(arms), strict=True))
    return list(named.values()), [
        Scored(named[arm], fold, seed, run, tuple(own)) for (arm, fold, seed), (run, own) in chosen.items()
    ]
