"""What is compared: an *arm* is one way to train, or an encoder as it is; each has runs on several folds and seeds."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ZERO_SHOT = "zero-shot"

_NOT_SETTINGS = ("task", "fold", "seed", "data", "include", "device", "trust_remote_code", "fold_seed")
_NOT_RECIPE = ("recipe", "description", "sources")


@dataclass(frozen=True)
class Arm:
    """One way to train, or an encoder as it is.

    Attributes:
        learner: such as `maml`, or what the encoder is called.
        mode: the transfer mode; None where nothing is trained.
        recipe: by name; None likewise.
        encoder: that was trained or scored.
        settings: hash of everything else that was resolved: hyper-parameters, steps, precision.
        source: the study or run it is from, where only that tells it from another one; empty otherwise.
        label: the shortest name by which it differs from the other arms.
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


def arm_of(row: Mapping[str, Any], config: Mapping[str, Any], source: str) -> Arm:
    """Return the arm of a score, without a label.

    Args:
        row: of the results of a run.
        config: of the run, as a tree.
        source: the study or run.
    """
    learner, encoder = str(row["learner"]), str(row["encoder"])
    if learner == ZERO_SHOT:
        return Arm(learner, None, None, encoder)
    if row.get("mode") is None:  # it was made elsewhere: each seed has an encoder of its own
        return Arm(learner, None, row.get("recipe"), "", source=source)
    settings = {key: value for key, value in config.items() if key not in _NOT_SETTINGS}
    settings["recipe"] = {k: v for k, v in (config.get("recipe") or {}).items() if k not in _NOT_RECIPE}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return Arm(learner, row["mode"], row["recipe"], encoder, digest)


def labelled(arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms with labels that tell them apart: learner, then mode, recipe, encoder, source, settings."""
    names = [arm.learner for arm in arms]
    for attribute, shown in (
        ("mode", "{} ({})"),
        ("recipe", "{} [{}]"),
        ("encoder", "{}, {}"),
        ("source", "{} in {}"),
        ("settings", "{} #{}"),
    ):
        clashes: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            clashes.setdefault(name, []).append(i)
        for same in clashes.values():
            values = [getattr(arms[i], attribute) or "" for i in same]
            if len(set(values)) > 1:
                for i, value in zip(same, values, strict=True):
                    names[i] = shown.format(names[i], value) if value else names[i]
    return [replace(arm, label=name) for arm, name in zip(arms, names, strict=True)]
