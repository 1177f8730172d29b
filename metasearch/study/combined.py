"""Scores of several runs combined into arms, after a check that they may be compared."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metasearch.errors import ConfigError, DataError
from metasearch.runs.rows import MEAN, Row
from metasearch.runs.versions import differing
from metasearch.study.arms import Arm, arm_of, labelled, settings_of
from metasearch.study.study import Run, Scored

_TOLERANCE = 0.01
"""How far two scores of the same encoder may be apart: another device or batch changes few ranks."""

ArmRows = tuple[Run, list[Row]]
"""A run and its rows of one arm."""


def require_agreement(rows: Sequence[tuple[Run, Row]], any_version: bool) -> None:
    """Raise an error that names the first run that differs, and how, unless all rows are of one task and its data.

    Raises:
        ConfigError: they are of different tasks, folds, weights of what is called the same encoder or, unless
            `any_version`, versions.
        DataError: they are on different data.
    """
    first, begun = rows[0]
    opened: dict[tuple[Any, ...], tuple[Run, str]] = {}
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
                f"{both} cannot be compared: they were made with {name} {one.get(name)} and {other.get(name)}; "
                "--any-version compares all the same"
            )
        if "weights" in row:
            # Weights that are drawn from a seed are others with each.
            encoder = row["encoder"], row["seed"] if row.get("seeded") else None
            before, weights = opened.setdefault(encoder, (run, row["weights"]))
            if weights != row["weights"]:
                raise ConfigError(
                    f"{before.path} and {run.path} cannot be compared: '{row['encoder']}' was not the same encoder in "
                    f"both (fingerprints {weights} and {row['weights']})"
                )


def combine(rows: Sequence[tuple[Run, Row]]) -> tuple[list[Arm], list[Scored]]:
    """Return the arms with their labels, and the scores of each on each fold with each seed.

    Zero-shot, which every run scores or takes over, counts once. Runs of the same arm are combined, wherever they are
    from; where two studies have the same arm on the same fold with the same seed, each study's is an arm.

    Raises:
        ConfigError: two runs of one study are the same arm, fold and seed; or zero-shot, of what should be the same
            encoder, has scores that differ.
    """
    by_arm: dict[Arm, dict[tuple[int, int], dict[int, ArmRows]]] = {}
    settings = {}
    known: dict[tuple[Any, ...], Arm] = {}  # a run has hundreds of rows of one or two arms
    for run, row in rows:
        key = id(run), row["learner"], row["encoder"], row.get("mode"), row.get("recipe")
        if key not in known:
            known[key] = arm_of(row, run.config, run.source)
            settings[known[key].settings] = settings_of(run.config)
        arm = known[key]
        runs = by_arm.setdefault(arm, {}).setdefault((row["fold"], row["seed"]), {})
        runs.setdefault(id(run), (run, []))[1].append(row)
    chosen: dict[tuple[Arm, int, int], ArmRows] = {}
    for arm, cells in by_arm.items():
        # The same arm, fold and seed in two studies: to keep one of them would be a silent choice.
        apart = not arm.zero_shot and any(len({run.source for run, _ in runs.values()}) > 1 for runs in cells.values())
        for (fold, seed), runs in cells.items():
            for run, own in runs.values():
                cell = replace(arm, source=run.source) if apart else arm, fold, seed
                if cell not in chosen:
                    chosen[cell] = run, own
                else:
                    _require_same(chosen[cell], (run, own), arm)
    arms = list(dict.fromkeys(arm for arm, _, _ in chosen))
    named = dict(zip(arms, labelled(arms, settings), strict=True))
    scored = [Scored(named[arm], fold, seed, run, tuple(own)) for (arm, fold, seed), (run, own) in chosen.items()]
    return list(named.values()), scored


def _require_same(one: ArmRows, other: ArmRows, arm: Arm) -> None:
    """Raise `ConfigError` unless two runs have the same zero-shot scores."""
    (first, before), (second, after) = one, other
    both = f"{first.path} and {second.path}"
    if not arm.zero_shot:
        raise ConfigError(f"{both} are both {arm.learner}, fold {before[0]['fold']}, seed {before[0]['seed']}")
    means = _means(before)
    for key, value in _means(after).items():
        # A measure that only one of them has is no contradiction.
        if abs(means.get(key, value) - value) > _TOLERANCE:
            raise ConfigError(
                f"{both} cannot be compared: zero-shot {key[0]} on {key[1]} is {means[key]:.4f} and {value:.4f}, so "
                f"'{arm.encoder}' is not the same encoder"
            )


def _means(rows: Sequence[Row]) -> dict[tuple[str, str, str], float]:
    tests = (row for row in rows if row["language"] == MEAN and row["split"] == "test")
    return {(row["measure"], row["split"], row["pool"]): row["value"] for row in tests}
