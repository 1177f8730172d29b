"""Vectors of all texts of a task, encoded once for all cells of a study that have the same weights."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.data.records import Data, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.jobs.crossval.folder import StudyFolder
from metasearch.jobs.distill.target_store import Targets, stored_targets
from metasearch.spec.recipe import Role

_FOLDS = 3
"""Each fold has its dev and its test part encoded, two fifths of all texts where there are five: three are more."""


class SharedVectors:
    """Gives vectors of a task's texts from a store on the disk, which the first to need them fills.

    All texts of a role are encoded together, whichever of them are asked for, so that vectors are the same bits whoever
    encodes them. They are kept by the encoder's fingerprint and checked when they are read; processes that need the
    same ones share the work (`stored_targets`).

    Args:
        encoder: whose vectors they are; it must not change while this is used.
        folder: of the store.
        data: all of the task's data.
        first: number of the role to begin with; processes that begin with different ones do not wait for each other.

    Raises:
        NonFiniteError: the encoder gives a vector that is not finite.
        RunFolderError: the folder cannot be written.
    """

    def __init__(self, encoder: Encoder, folder: Path, data: Data, first: int = 0) -> None:
        self.device: torch.device = encoder.device
        texts = _by_role(data)
        roles = list(texts)
        turn = first % len(roles)
        self._vectors: dict[Role, Targets] = {
            role: stored_targets(folder, encoder, texts[role], role) for role in [*roles[turn:], *roles[:turn]]
        }

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return the unit vectors of texts of the task, `(len(texts), D)`; `KeyError` for a text of none."""
        return self._vectors[role].vectors(texts)


def shared_folder(cell: Path) -> Path | None:
    """Return where cells of a study share vectors; None where a run is no cell, or its study has too few folds."""
    # <study>/cells/<arm>/<fold and seed>
    above = cell.resolve().parents
    if len(above) < 3 or above[1].name != "cells" or not (study := StudyFolder(above[2])).begun:
        return None
    return study.path / "vectors" if len(study.stored().config.folds) >= _FOLDS else None


def _by_role(data: Data) -> dict[Role, list[str]]:
    """Return the texts of each role that an evaluation encodes, candidates first."""
    roles: dict[Role, list[str]] = {}
    for role, text, _ in texts_of(data):
        roles.setdefault(role, []).append(text)
    return dict(sorted(roles.items()))
