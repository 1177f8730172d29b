"""Arms of a comparison: an *arm* is one way to train, or an untrained encoder, with runs on several folds and seeds."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metasearch.config import yaml
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT, renew

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
        start: hash of the settings of the encoder before training, such as prompts and a trimmed vocabulary; empty
            without. With `encoder` it identifies the vectors before training, and so the baseline.
    """

    learner: str
    mode: str | None
    recipe: str | None
    encoder: str
    settings: str = ""
    source: str = ""
    label: str = ""
    start: str = ""

    @property
    def zero_shot(self) -> bool:
        """Whether it is the encoder before any training."""
        return self.learner == ZERO_SHOT

    @property
    def made_once(self) -> bool:
        """Whether all folds share one model per seed, as with a distilled student."""
        return self.mode is None and self.learner not in (ZERO_SHOT, NEUTRAL)

    def begins_as(self, other: "Arm") -> bool:
        """Return whether another arm is the encoder that it was before training."""
        return other.zero_shot and (other.encoder, other.start) == (self.encoder, self.start)


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
        settings["recipe"] = {key: value for key, value in renew(recipe).items() if key not in _NOT_RECIPE}
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
        alike: dict[str, list[int]] = defaultdict(list)
        for i, name in enumerate(names):
            alike[name].append(i)
        for same in alike.values():
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
