"""Reads runs and studies back, and refuses to combine what must not be compared.

A *study* is a folder with `study.yaml` and a run folder for each of its cells in `cells/`; a *run* is a folder with
`config.yaml`. A cell is one arm on one fold with one seed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError, DataError, RunFolderError, to_resume
from metasearch.files import read_bytes
from metasearch.runs.folder import CONFIG, RunFolder
from metasearch.runs.rows import STAGE, Row, read_rows
from metasearch.spec import yaml
from metasearch.spec.run import flat
from metasearch.study.combined import combine, require_agreement
from metasearch.study.study import Run, Study, abridged

STUDY_FILE = "study.yaml"


def read_study(paths: Sequence[Path], task: str | None = None, any_version: bool = False) -> Study:
    """Return the scores of runs and studies as one study. A run that is listed twice counts once.

    Args:
        paths: folders of studies and runs.
        task: name of the task, where the runs have scores on several.
        any_version: combine also what different versions of metasearch and its libraries made.

    Raises:
        ConfigError: the runs are of different tasks, folds or versions, or two are the same arm on the same fold with
            the same seed; the difference, or the two, are named.
        DataError: the runs are on different data, or a file is damaged, cut off or foreign; file and line are named.
        RunFolderError: a path is no study and no run, nothing in it is finished, or a file was changed since its run
            wrote it.
    """
    runs: dict[Path, Run] = {}
    missing: list[str] = []
    names = _named([study_of(path) or path for path in paths])
    for path in {path.resolve(): path for path in paths}.values():
        finished, unfinished = _runs(path, names[(study_of(path) or path).resolve()])
        for run in finished:
            # By resolved path: a run that is named alone and within its study counts once.
            runs.setdefault(run.path.resolve(), run)
        missing += unfinished
    scores = [(run, row) for run in runs.values() for row in run.rows if row["task"] != STAGE]
    rows = [(run, row) for run, row in scores if task in (None, row["task"])]
    if not rows:
        raise _nothing(paths, scores, task, missing)
    require_agreement(rows, any_version)
    arms, scored = combine(rows)
    first = rows[0][1]
    return Study(
        name=", ".join(path.resolve().name for path in paths),
        task=first["task"],
        data=first["data"],
        versions=first["versions"],
        arms=tuple(arms),
        scored=tuple(scored),
        runs=tuple(runs.values()),
        missing=tuple(missing),
    )


def _named(paths: Sequence[Path]) -> dict[Path, str]:
    """Return each folder once, resolved, with as much of the end of its path as tells it from the others."""
    places = list(dict.fromkeys(path.resolve() for path in paths))
    # As short as it can be: `results/a` and `results/b` are `a` and `b`, `x/a` and `y/a` keep their folders.
    for depth in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-depth:]) for place in places]
        if len(set(names)) == len(names):
            break
    return dict(zip(places, names, strict=True))


def _runs(path: Path, name: str) -> tuple[list[Run], list[str]]:
    """Return the finished runs of a folder, and what is not finished."""
    if (path / STUDY_FILE).is_file():
        listed = yaml.tree(path / STUDY_FILE).get("cells")
        if not isinstance(listed, list) or not all(isinstance(cell, str) for cell in listed):
            raise ConfigError(f"{path / STUDY_FILE}: cells: expected a list of names")
        done = [cell for cell in listed if RunFolder(path / "cells" / cell).finished]
        missing = [f"{path}: cell {cell} is not finished" for cell in listed if cell not in done]
        return [_run(path / "cells" / cell, name) for cell in done], missing
    if not (path / CONFIG).is_file():
        what = "does not exist" if not path.exists() else f"is no study and no run: no {STUDY_FILE}, no {CONFIG}"
        raise RunFolderError(f"{path} {what}")
    if not RunFolder(path).finished:
        raise RunFolderError(f"{path} is not finished; go on with: {to_resume(path)}")
    return [_run(path, name)], []


def study_of(path: Path) -> Path | None:
    """Return the study that a run is a cell of, or None: cells are one source, however they are named."""
    cells = (above for above in path.resolve().parents if above.name == "cells")
    return next((above.parent for above in cells if (above.parent / STUDY_FILE).is_file()), None)


def _run(path: Path, source: str) -> Run:
    config = _config(path)
    run = Run(path, source, config, read_rows(path / "results.jsonl", config), _facts(path / "facts.json"))
    # After the reading, which names the line where it can.
    RunFolder(path).require_unchanged()
    return run


def _config(path: Path) -> Mapping[str, Any]:
    config = yaml.tree(path / CONFIG).get("config")
    if not isinstance(config, dict):
        raise ConfigError(f"{path / CONFIG}: config: this key is missing; it is no run of metasearch")
    return flat(config)


def _facts(path: Path) -> Mapping[str, Any]:
    try:
        known = json.loads(read_bytes(path)) if path.exists() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}. The file is cut off or damaged") from None
    if not isinstance(known, dict):
        raise DataError(f"{path}: not the facts of a run: {json.dumps(known)[:40]}")
    return known


def _nothing(
    paths: Sequence[Path], scores: Sequence[tuple[Run, Row]], task: str | None, missing: Sequence[str]
) -> Exception:
    where = ", ".join(map(str, paths))
    known = sorted({row["task"] for _, row in scores})
    if task is not None and known:
        return ConfigError(f"{where}: no scores on task '{task}'; there are some on {', '.join(known)}")
    return RunFolderError(f"{where}: no finished run has scores on a task{abridged(missing)}")
