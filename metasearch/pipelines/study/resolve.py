"""From names to a study's configuration: learners, modes and folds; additions to a study that exists."""

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from metasearch.config import yaml
from metasearch.config.library import Library, overrides
from metasearch.config.projection import ProjectionSettings
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT, Recipe
from metasearch.config.run import flat
from metasearch.config.study import StudyConfig, TrainedArm
from metasearch.data.benchmark import Benchmark, build, on_folds
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import ConfigError, DataError
from metasearch.pipelines import factory
from metasearch.pipelines.neutral import train_texts

log = logging.getLogger(__name__)
_UNTRAINED = (ZERO_SHOT, NEUTRAL)


def build_arms(
    learners: Sequence[str],
    recipes: Sequence[str],
    modes: Sequence[str],
    changes: Mapping[str, Sequence[str]],
    config: StudyConfig,
    library: Library,
    named: bool = True,
) -> tuple[TrainedArm, ...]:
    """Return each learner and recipe in each mode that fits; others are skipped with a log line.

    `changes` are values to put over a recipe, by learner or recipe, and at `""` over all. Learners that are not
    `named` may fit no mode.
    """
    written = [("learner", name) for name in learners if name not in _UNTRAINED] + [("recipe", n) for n in recipes]
    _check_modes(modes, [name for _, name in written], library)
    benchmarks: dict[str, list[Benchmark]] = {}
    arms: dict[str, TrainedArm] = {}
    for flag, text in dict.fromkeys(written):
        name, own = _name_and_mode(flag, text, modes, library)
        changed = [*changes.get("", ()), *changes.get(name, ())]
        fits = 0
        for mode in map(library.mode, own):
            if mode.mode not in benchmarks:
                found = library.arrangements(config.data.task, mode)
                benchmarks[mode.mode] = on_folds(build(config.on(config.folds[0]), found), config.folds)
            learner, recipe = (name, None) if flag == "learner" else (None, name)
            chosen = library.choose_recipe(mode, config.encoder.name, learner, recipe, changed)
            links, needed = mode.links, factory.learner_class(chosen).links
            needs = " or ".join(map(str, needed))
            if links not in needed:
                log.info(f"{name} is skipped in mode {mode}, which has {links} links; it needs {needs}")
                continue
            fits += 1
            arm = TrainedArm(arm=f"{name}-{mode}", mode=mode, recipe=factory.resolved(chosen))
            if arms.setdefault(arm.arm, arm) != arm:
                raise ConfigError(f"learner and recipe '{name}' have the same name and differ; omit one")
            factory.check_fit(chosen, benchmarks[mode.mode][0], config.compute.precision, config.compute.checkpointing)
            _check_sizes(benchmarks[mode.mode], chosen, config)
        if not fits and (named or flag == "recipe" or name in changes):
            raise ConfigError(f"'{name}' needs a mode of {needs} links; none of {', '.join(own)} is one")
    if changes.get("") and not arms:
        first = changes[""][0]
        raise ConfigError(f"--set {first} changes nothing: no learner is trained")
    return tuple(arms.values())


def _check_modes(modes: Sequence[str], trained: Sequence[str], library: Library) -> None:
    """Log modes of `--mode` that no learner takes; `ConfigError` for an unknown mode."""
    for mode in modes:
        library.mode(mode)
    if modes and all(":" in name for name in trained):
        log.warning("--mode %s has no effect: every learner has its own mode", ",".join(modes))


def _check_sizes(folds: Sequence[Benchmark], recipe: Recipe, config: StudyConfig) -> None:
    """Raise `DataError` if a fold's data is too small, for all seeds if they draw labels."""
    for benchmark in folds:
        drawn = benchmark.trained_on(recipe.translate)
        for seed in config.seeds if recipe.labels is not None else config.seeds[:1]:
            try:
                check_sizes(drawn, recipe, seed)
            except DataError as error:
                raise DataError(f"fold {benchmark.fold}: {error}") from None


def resolve_neutral(
    learners: Sequence[str], changes: Mapping[str, Sequence[str]], config: StudyConfig
) -> ProjectionSettings | None:
    """Return how to make the base encoder for the arm `neutral`, if it is among the learners."""
    if NEUTRAL not in learners:
        return None
    settings = yaml.check(overrides(changes.get(NEUTRAL, ())), ProjectionSettings, f"--set {NEUTRAL}:")
    for fold in config.folds:
        train_texts(build(config.on(fold)), settings)
    return settings


def _name_and_mode(flag: str, written: str, modes: Sequence[str], library: Library) -> tuple[str, Sequence[str]]:
    """Return name and modes for `maml` or `maml:trans`; by default the modes of `--mode`."""
    name, colon, mode = (part.strip() for part in written.partition(":"))
    if colon and not (name and mode):
        raise ConfigError(f"--{flag} {written}: expected a name and its mode, such as maml:trans")
    if name in _UNTRAINED:
        always = "; it is always a part" if name == ZERO_SHOT else ""
        raise ConfigError(f"--{flag} {written}: {name} trains nothing and has no mode{always}")
    if not mode and not modes:
        known = ", ".join(library.names("mode"))
        raise ConfigError(f"--mode is missing; one of {known}. Or add it to the name: --{flag} {name}:trans")
    return name, [mode] if mode else modes


# Additions to a study. Its cells share all settings except these, and none of the others may change.

_GROWING = ("trained", "folds", "seeds")
_NOTES = {"description", "source", "sources"}
"""Keys of a task, mode or recipe that change no result."""


def merged(old: StudyConfig, new: StudyConfig, path: Path) -> StudyConfig:
    """Return a study with the additions of another configuration; every arm gets all folds and seeds of both."""
    unset = {key: getattr(old, key) for key in ("threads", "neutral") if getattr(new, key) is None}
    # With defaults spelt out, an option that is written and one that is left at the same value are equal.
    new = _resolved(new.model_copy(update=unset))
    old = _resolved(old.model_copy(update={"neutral": old.neutral or new.neutral}))
    both = {arm.arm for arm in old.trained} & {arm.arm for arm in new.trained}
    before, now = _settings(old, both), _settings(new, both)
    for key in before | now:
        if before.get(key) != now.get(key):
            stored, given = _format_value(before.get(key)), _format_value(now.get(key))
            raise ConfigError(f"{path}: the study has {key} {stored}, not {given}; choose another folder with -o")
    return old.model_copy(
        update={
            "trained": (*old.trained, *(arm for arm in new.trained if arm.arm not in both)),
            "folds": tuple(sorted({*old.folds, *new.folds})),
            "seeds": tuple(dict.fromkeys([*old.seeds, *new.seeds])),  # the study's seeds come first
        }
    )


def _resolved(config: StudyConfig) -> StudyConfig:
    """Return a configuration with all options of all learners spelt out; `ConfigError` if one is wrong."""
    trained = tuple(arm.model_copy(update={"recipe": factory.resolved(arm.recipe)}) for arm in config.trained)
    return config.model_copy(update={"trained": trained})


def _settings(config: StudyConfig, arms: Collection[str]) -> yaml.Tree:
    """Return the shared settings, each named as its flag, and the settings of some arms, by dotted key."""
    tree = config.model_dump(mode="json")
    shared = {key: value for key, value in flat(tree).items() if key not in _GROWING} | {"task": tree["data"]["task"]}
    own = {arm["arm"]: arm for arm in tree["trained"] if arm["arm"] in arms}
    found = yaml.flatten(shared | own)
    return {key: value for key, value in found.items() if not _NOTES.intersection(key.split(".")[1:])}


def _format_value(value: Any) -> str:
    if value in (None, [], ""):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else f"'{value}'"
