"""Arms of a comparison: an *arm* is one way to train, or an untrained encoder, with runs on several folds and seeds."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metasearch.config import yaml
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT

_NOT_SETTINGS = (
    "task", "fold", "fold_seed", "seed", "data", "include", "declared_in", "device", "checkpointing",
    "trust_remote_code",
)  # fmt: skip
_NOT_RECIPE = ("recipe", "description", "sources")
_NAMED_SETTINGS = 2
"""Settings that a label names, at most; where more differ, their hash tells arms apart."""

Settings = Mapping[str, str]
"""Dotted key → value, of everything that a way to train depends on."""


@dataclass(frozen=True)
class Arm:
    """One way to train, or an untrained encoder.

    Attributes:
        learner: the learner's name, such as `maml`, or the untrained encoder's.
        mode: transfer mode; like `recipe` None if nothing is trained.
        encoder: name of the encoder that was trained or scored.
        settings: hash of all other settings: hyper-parameters, steps, precision.
        source: study or run it is from, if nothing else distinguishes it.
        label: shortest name that distinguishes it.
    """

    learner: str
    mode: str | None
    recipe: str | None
    encoder: str
    settings: str = ""
    source: str = ""
    label: str = ""

    @property
    def zero_shot(self) -> bool:
        """Whether it is the encoder before any training."""
        return self.learner == ZERO_SHOT

    @property
    def made_once(self) -> bool:
        """Whether all folds share one model per seed, as with a distilled student."""
        return self.mode is None and self.learner not in (ZERO_SHOT, NEUTRAL)


def find_arm(row: Mapping[str, Any], config: Mapping[str, Any], source: str) -> Arm:
    """Return a score's arm without label, from its run's configuration and source (study or run)."""
    learner, encoder = str(row["learner"]), str(row["encoder"])
    if learner == ZERO_SHOT:
        return Arm(learner, None, None, encoder)
    if learner == NEUTRAL:  # its map is fitted on each fold
        return Arm(learner, None, None, encoder, digest(select_settings(config)))
    if row.get("mode") is None:  # it was made elsewhere: each seed has an encoder of its own
        return Arm(learner, None, row.get("recipe"), "", source=source)
    return Arm(learner, row["mode"], row.get("recipe"), encoder, digest(select_settings(config)))


def select_settings(config: Mapping[str, Any]) -> Settings:
    """Return the training settings in a run's configuration, without data, names and notes."""
    settings = {key: value for key, value in config.items() if key not in _NOT_SETTINGS}
    recipe = config.get("recipe")
    if isinstance(recipe, Mapping):
        settings["recipe"] = {key: value for key, value in recipe.items() if key not in _NOT_RECIPE}
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
        ("source", "{} in {}"),
    ):
        alike: dict[str, list[int]] = defaultdict(list)
        for i, name in enumerate(names):
            alike[name].append(i)
        for same in alike.values():
            values = [getattr(arms[i], attribute) or "" for i in same]
            if len(set(values)) > 1:
                words = _differences(values, known or {}) if attribute == "settings" else {}
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
        value: ", ".join(f"{key.removeprefix('recipe.')}={known[value].get(key, 'none')}" for key in keys)
        for value in hashed
    }
