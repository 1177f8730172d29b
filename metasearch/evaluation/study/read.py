"""Reads runs and studies back, and refuses to combine what must not be compared.

A *study* is a folder with `study.yaml` and a run folder for each of its cells in `cells/`; a *run* is a folder with
`config.yaml`. A cell is one arm on one fold with one seed.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metasearch.config import yaml
from metasearch.config.arrangement import Arrangement, Pattern
from metasearch.config.languages import parse_pair
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT, Recipe
from metasearch.config.run import flat
from metasearch.data.records import grouped
from metasearch.errors import ConfigError, DataError, RunFolderError, to_resume
from metasearch.evaluation.study.study import Arm, Run, Scored, Study, abridged
from metasearch.runs.folder import CONFIG, RunFolder, read_config
from metasearch.runs.rows import STAGE, Row, read_rows
from metasearch.runs.versions import differing

STUDY_FILE = "study.yaml"

_CELL = ("measure", "pool", "language", "candidates")
_SAME_SCORE = 1e-3
"""Other processors round vectors in other ways, which swaps the ranks of candidates of almost equal scores."""

_NOT_SETTINGS = (
    "task", "fold", "fold_seed", "seed", "data", "include", "declared_in", "device", "checkpointing",
    "trust_remote_code",
)  # fmt: skip
_NOT_RECIPE = ("recipe", "description", "sources")
_OF_ENCODER = ("prompts", "trim", "neutralise")
"""Settings that change the vectors of an encoder before training. Its checkpoint, which its name stands for, and its
lengths are facts of each row (`read.require_agreement`)."""
_NAMED_SETTINGS = 2
"""Settings that a label names, at most; where more differ, their hash tells arms apart."""

Settings = Mapping[str, str]
"""Dotted key → value, of everything that a way to train depends on."""

ArmRows = tuple[Run, list[Row]]
"""A run and its rows of one arm."""


def require_agreement(rows: Sequence[tuple[Run, Row]], any_version: bool) -> None:
    """Raise an error with the first differing run, unless all rows share one task and data."""
    first, begun = rows[0]
    opened: dict[tuple[Any, ...], tuple[Run, Any]] = {}
    tasks = list(dict.fromkeys(row["task"] for _, row in rows))
    if len(tasks) > 1:
        raise ConfigError(f"there are scores on several tasks: {', '.join(tasks)}; choose one with --task")
    for run, row in rows:
        both = f"{first.path} and {run.path}" if run is not first else f"scores of {run.path}"
        if row["data"] != begun["data"]:
            raise DataError(
                f"{both} cannot be compared: their data differs (fingerprints {begun['data']}, {row['data']})"
            )
        if row.get("fold_seed") != begun.get("fold_seed"):
            seeds = f"fold_seed {begun.get('fold_seed')} and {row.get('fold_seed')}"
            raise ConfigError(f"{both} cannot be compared: their folds are cut differently ({seeds})")
        one, other = begun["versions"], row["versions"]
        if not any_version and (name := differing(one, other)):
            raise ConfigError(
                f"{both} cannot be compared: {name} {one.get(name)} and {other.get(name)} differ; use "
                "--allow-mixed-versions to compare anyway"
            )
        # Rows of older runs have no lengths. Weights that are drawn from a seed are others with each.
        encoder = row["encoder"], row["seed"] if row.get("seeded") else None
        for fact in ("weights", "lengths"):
            if fact in row:
                before, known = opened.setdefault((fact, *encoder), (run, row[fact]))
                if known != row[fact]:
                    what = "fingerprints" if fact == "weights" else fact
                    raise ConfigError(
                        f"{before.path} and {run.path} cannot be compared: '{row['encoder']}' was not the same encoder "
                        f"in both ({what} {known} and {row[fact]})"
                    )


def combine(rows: Sequence[tuple[Run, Row]]) -> tuple[list[Arm], list[Scored]]:
    """Return the arms with their labels, and the scores of each on each fold with each seed.

    The scores of an encoder before training, which every run of it has, must agree and count once. If two studies have
    the same arm on the same fold with the same seed, each study's is an arm; otherwise runs of an arm are combined.
    """
    by_arm: dict[Arm, dict[tuple[int, int], dict[int, ArmRows]]] = {}
    settings: dict[str, Settings] = {}
    known: dict[tuple[Any, ...], Arm] = {}  # a run has hundreds of rows of one or two arms
    for run, row in rows:
        key = id(run), row["learner"], row["encoder"], row.get("mode"), row.get("recipe")
        if key not in known:
            arm = known[key] = find_arm(row, run.config, run.source)
            settings |= {arm.settings: select_settings(run.config), arm.start: start_settings(row, run.config), "": {}}
        runs = by_arm.setdefault(known[key], {}).setdefault((row["fold"], row["seed"]), {})
        runs.setdefault(id(run), (run, []))[1].append(row)
    chosen: dict[tuple[Arm, int, int], ArmRows] = {}
    for arm, cells in by_arm.items():
        # The same arm, fold and seed in two studies: to keep one of them would be a silent choice.
        apart = not arm.zero_shot and any(len({run.source for run, _ in runs.values()}) > 1 for runs in cells.values())
        for (fold, seed), runs in cells.items():
            # A run that trained nothing first, then by path: the order of the arguments does not decide what is read.
            for run, own in sorted(
                runs.values(), key=lambda each: (each[1][0].get("mode") is not None, str(each[0].path))
            ):
                cell = replace(arm, source=run.source) if apart else arm, fold, seed
                before = chosen.setdefault(cell, (run, own))
                if before[0] is not run and not arm.zero_shot:
                    raise ConfigError(
                        f"{before[0].path} and {run.path} are both {arm.learner}, fold {fold}, seed {seed}"
                    )
                _require_equal_scores(before, (run, own))
    arms = list(dict.fromkeys(arm for arm, _, _ in chosen))
    named = dict(zip(arms, labelled(arms, settings), strict=True))
    scored = [Scored(named[arm], fold, seed, run, tuple(own)) for (arm, fold, seed), (run, own) in chosen.items()]
    return list(named.values()), scored


def _require_equal_scores(one: ArmRows, other: ArmRows) -> None:
    """Raise `ConfigError` where one encoder has different test scores in two runs."""
    # Of test alone: a training may hold back a part of dev.
    first, second = (
        {tuple(row.get(key) for key in _CELL): row["value"] for row in rows if row["split"] == "test"}
        for _, rows in (one, other)
    )
    for cell in filter(second.__contains__, first):
        if not abs(first[cell] - second[cell]) <= _SAME_SCORE:
            (run, (row, *_)), (again, _) = one, other
            raise ConfigError(
                f"{run.path} and {again.path} cannot be compared: both scored '{row['encoder']}' before training on "
                f"fold {row['fold']} with seed {row['seed']}, but {' '.join(filter(None, cell))} is {first[cell]:.4f} "
                f"and {second[cell]:.4f}"
            )


def read_study(paths: Sequence[Path], task: str | None = None, any_version: bool = False) -> Study:
    """Return the scores of runs and studies as one study. Duplicate runs count once.

    Args:
        paths: study and run folders.
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
    if file := next((path for path in paths if path.is_file()), None):
        raise ConfigError(f"{file} is a file, without a score for each question; name a run folder or study")
    names = _label_paths([find_study(path) or path for path in paths])
    for path in {path.resolve(): path for path in paths}.values():
        finished, unfinished = _runs(path, names[(find_study(path) or path).resolve()])
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


def _label_paths(paths: Sequence[Path]) -> dict[Path, str]:
    """Return each folder once, resolved, with its path below the folder that holds all of them."""
    places = list(dict.fromkeys(path.resolve() for path in paths))
    above = os.path.commonpath([place.parent for place in places]) if places else ""
    return {place: place.relative_to(above).as_posix() for place in places}


def _runs(path: Path, name: str) -> tuple[list[Run], list[str]]:
    """Return a folder's finished runs, and its unfinished ones."""
    if (path / STUDY_FILE).is_file():
        listed = read_cells(path)
        done = [cell for cell in listed if RunFolder(path / "cells" / cell).finished]
        missing = [f"{path}: run {cell} is not finished" for cell in listed if cell not in done]
        return [_run(path / "cells" / cell, name) for cell in done], missing
    if not (path / CONFIG).is_file():
        what = "does not exist" if not path.exists() else f"is no study and no run: no {STUDY_FILE}, no {CONFIG}"
        raise RunFolderError(f"{path} {what}")
    if not RunFolder(path).finished:
        raise RunFolderError(f"{path} is not finished; continue with: {to_resume(path)}")
    return [_run(path, name)], []


def read_cells(study: Path) -> list[str]:
    """Return the names of a study's cells, whichever version wrote it; `ConfigError` if its file is damaged."""
    listed = yaml.tree(study / STUDY_FILE).get("cells")
    if not isinstance(listed, list) or not all(isinstance(cell, str) for cell in listed):
        raise ConfigError(f"{study / STUDY_FILE}: cells: expected a list of names")
    return listed


def find_study(path: Path) -> Path | None:
    """Return the study that a run belongs to, or None: its runs are one source."""
    cells = (above for above in path.resolve().parents if above.name == "cells")
    return next((above.parent for above in cells if (above.parent / STUDY_FILE).is_file()), None)


def _run(path: Path, source: str) -> Run:
    tree = read_config(path)
    rows = read_rows(path / "results.jsonl", complete=True)
    facts = RunFolder(path).facts()
    # After the reading, which names the line where it can.
    RunFolder(path).require_unchanged()
    return Run(path, source, flat(tree), tuple(rows), facts, unseen_languages(tree))


def unseen_languages(tree: Mapping[str, Any]) -> frozenset[str]:
    """Return a task's languages, and pairs with one, that the arrangements of a run's mode leave out.

    Empty if nothing is trained, or if a file of an earlier version has its task or mode by name alone.
    """
    task, mode = tree.get("data", {}).get("task"), tree.get("mode")
    if not (isinstance(task, Mapping) and isinstance(mode, Mapping) and task.get("arrangements")):
        return frozenset()
    patterns = {Pattern.parse(each) for phase in ("meta_train", "meta_valid") for each in mode[phase]}
    written = [each for key, value in task["arrangements"].items() if Pattern.parse(key) in patterns for each in value]
    seen = frozenset[str]().union(*(Arrangement.parse(each).languages for each in written))
    pairs = {pair for pair in task.get("pairs", ()) if not seen.issuperset(parse_pair(pair, task["languages"]))}
    return frozenset(task["languages"]) - seen | pairs


def _nothing(
    paths: Sequence[Path], scores: Sequence[tuple[Run, Row]], task: str | None, missing: Sequence[str]
) -> Exception:
    where = ", ".join(map(str, paths))
    known = sorted({row["task"] for _, row in scores})
    if task is not None and known:
        return ConfigError(f"{where}: no scores on task '{task}'; there are some on {', '.join(known)}")
    return RunFolderError(f"{where}: no finished run has scores on a task{abridged(missing)}")


# Arms of scores, their settings and labels.


def find_arm(row: Mapping[str, Any], config: Mapping[str, Any], source: str) -> Arm:
    """Return a score's arm without label, from its run's configuration and source (study or run)."""
    learner, encoder, mode = str(row["learner"]), str(row["encoder"]), row.get("mode")
    start = digest(before) if (before := start_settings(row, config)) else ""
    if learner == ZERO_SHOT:
        return Arm(learner, None, None, encoder, start=start)
    if mode is None and learner != NEUTRAL:  # it was made elsewhere: each seed has an encoder of its own
        return Arm(learner, None, row.get("recipe"), "", source=source)
    # The map of `neutral` is fitted on each fold, as a learner is trained on each.
    recipe = None if learner == NEUTRAL else row.get("recipe")
    return Arm(learner, mode, recipe, encoder, digest(select_settings(config)), start=start)


def start_settings(row: Mapping[str, Any], config: Mapping[str, Any]) -> Settings:
    """Return the settings of a run that change the vectors of its encoder before training, without empty ones."""
    kept = _OF_ENCODER if row["learner"] == ZERO_SHOT else _OF_ENCODER[:2]  # `neutral` begins without its map
    settings = select_settings(config).items()
    return {key: value for key, value in settings if key.split(".")[0] in kept and value not in ("[]", "{}")}


def select_settings(config: Mapping[str, Any]) -> Settings:
    """Return the training settings in a run's configuration, without data, names and notes."""
    settings = {key: value for key, value in config.items() if key not in _NOT_SETTINGS}
    recipe = config.get("recipe")
    if isinstance(recipe, Mapping):
        settings["recipe"] = {key: value for key, value in Recipe.renew(recipe).items() if key not in _NOT_RECIPE}
    if isinstance(settings.get("trim"), list | tuple):
        settings["trim"] = sorted(settings["trim"])  # languages in any order give the same vocabulary
    known = {key: value for key, value in yaml.flatten(settings).items() if value is not None}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in known.items()}


def digest(settings: Settings) -> str:
    """Return a short hash of settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def labelled(arms: Sequence[Arm], known: Mapping[str, Settings] | None = None) -> list[Arm]:
    """Return the arms with distinct labels; `known` settings by hash name what differs, otherwise the hash does."""
    names = [arm.learner for arm in arms]
    for attribute, shown in (
        ("mode", "{} ({})"),
        ("recipe", "{} [{}]"),
        ("encoder", "{}, {}"),
        ("settings", "{}, {}"),
        ("start", "{}, {}"),
        ("source", "{} in {}"),
    ):
        for same in grouped(range(len(names)), names.__getitem__).values():
            values = [getattr(arms[i], attribute) or "" for i in same]
            if len(set(values)) > 1:
                words = _differences(values, known or {}) if attribute in ("settings", "start") else {}
                for i, value in zip(same, values, strict=True):
                    names[i] = shown.format(names[i], words.get(value, value)) if value else names[i]
    return [replace(arm, label=name) for arm, name in zip(arms, names, strict=True)]


def _differences(hashes: Sequence[str], known: Mapping[str, Settings]) -> dict[str, str]:
    """Return for each hash the few settings that differ, such as `outer.lr=1e-4`, or the hash itself."""
    hashed = {value: f"settings {value}" for value in hashes}
    if not all(value in known for value in hashed):
        return hashed
    # Over the keys of all: what only one of them sets is a difference, too.
    every = {key: {known[one].get(key, "none") for one in hashed} for value in hashed for key in known[value]}
    keys = sorted(key for key, values in every.items() if len(values) > 1)
    # A key that only some have follows from one beside it, such as an option of a loss from the name of the loss.
    everywhere = {key for key in keys if all(key in known[one] for one in hashed)}
    sections = {key.rpartition(".")[0] for key in everywhere}
    shorter = [key for key in keys if key in everywhere or key.rpartition(".")[0] not in sections]
    if len({tuple(known[one].get(key) for key in shorter) for one in hashed}) == len(hashed):
        keys = shorter
    if not 0 < len(keys) <= _NAMED_SETTINGS:
        return hashed
    return {
        value: ", ".join(f"{key.removeprefix('recipe.')}={_shown(known[value].get(key, '[]'))}" for key in keys)
        for value in hashed
    }


def _shown(value: str) -> str:
    """Return a setting as a label has it: a list without brackets, `none` for nothing, an empty text in quotes."""
    items = json.loads(value) if value.startswith("[") and value.endswith("]") else [value or "''"]
    return ",".join(map(str, items)) or "none"
