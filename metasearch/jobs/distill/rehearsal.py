"""Goes through the data of all stages before the first one begins, and adds up the room that they take on the disk.

What is added up is certain: models, checkpoints, and vectors of frozen encoders that are not kept yet. So no run is
refused that would have had room.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import MetasearchError
from metasearch.files import require_room
from metasearch.jobs.distill.prepared import PreparedSource
from metasearch.jobs.distill.roles import Roles
from metasearch.jobs.distill.row_targets import bytes_each as bytes_each_row
from metasearch.jobs.distill.segments import bytes_each, digests_of
from metasearch.jobs.distill.sources import StageData, training_data
from metasearch.jobs.distill.stage import learner_of
from metasearch.jobs.distill.target_store import VectorOutput, are_vectors, stored_digests
from metasearch.jobs.distill.targets import targets_folder, texts_for
from metasearch.learners.base import Wanted
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.stages import RoleName, Stage
from metasearch.training.room import checkpoint_bytes, checkpoints_kept

Digests = NDArray[np.bytes_]


def rehearse(config: DistillConfig, roles: Roles, folder: Path) -> None:
    """Read the data of every stage as the stage will, and see that its steps and the disk suffice; writes nothing.

    Args:
        config: of the run.
        roles: its encoders.
        folder: where the run will be.

    Raises:
        ConfigError: a stage has fewer steps than its learner needs.
        DataError: the data of a stage is damaged or too small.
        RunFolderError: the disk has too little room; it names the bytes that are needed and those that are free.
    """
    room = _Room(config, roles, targets_folder(config, folder))
    for _, name, stage in config.stages:
        encoder = roles.stand_in(stage.trains, stage.max_length)
        data = training_data(config, name, encoder)
        source, batches, total = data
        learner, options, wanted = learner_of(stage, f"stage '{name}'")
        try:
            learner.check_steps(options, total)
        except MetasearchError as error:
            raise type(error)(f"stage '{name}': {error}") from None
        if wanted and are_vectors(wanted.output):
            if isinstance(source, PreparedSource):
                room.add_rows(stage, wanted, data)
            else:
                room.add_targets(stage, wanted.output, texts_for(wanted, source.seen(batches, total)))
        room.add_stage(stage, total)
    # At its end there is one model more, that of the run.
    own = max(*room.peaks, room.models + room.last)
    if config.targets:
        require_room(Path(config.targets), room.targets, "vectors of the frozen encoders")
        require_room(folder, own, "models and checkpoints of the stages")
    else:
        require_room(folder, own, "models, checkpoints and vectors of the frozen encoders")


@dataclass
class _Room:
    """Bytes on the disk, added up stage by stage.

    Attributes:
        models: of finished stages, with the vectors so far where these are kept in the run.
        targets: of vectors.
        last: of the last model.
        peaks: of each stage, while it trains.
    """

    config: DistillConfig
    roles: Roles
    folder: Path
    models: int = 0
    targets: int = 0
    last: int = 0
    peaks: list[int] = field(default_factory=lambda: [0])
    _known: dict[tuple[RoleName, int, VectorOutput], Digests] = field(default_factory=dict)
    _rows: dict[tuple[object, ...], int] = field(default_factory=dict)
    _trained: set[RoleName] = field(default_factory=set)

    def add_targets(self, stage: Stage, output: VectorOutput, texts: list[str]) -> None:
        """Add the vectors that a stage needs and that neither the folder nor an earlier stage has."""
        role = cast(RoleName, stage.against)
        frozen = self.roles.at(role, stage.max_length)
        if role in self._trained:
            # Vectors of weights that are not there yet; a folder of many runs may have them from a run like this one.
            known = None if self.config.targets else np.zeros(0, "S16")
        else:
            key = (role, frozen.limit("text"), output)
            kept = self._known.get(key)
            known = _rows(stored_digests(self.folder, frozen, "text", output)) if kept is None else kept
        if known is None:
            return
        new = np.setdiff1d(_rows(digests_of(texts)), known)
        if role not in self._trained:
            self._known[key] = np.concatenate([known, new])
        size = len(new) * bytes_each(frozen.dimension(output))
        self.targets += size
        self.models += 0 if self.config.targets else size

    def add_rows(self, stage: Stage, wanted: Wanted, data: StageData) -> None:
        """Add the vectors that a stage needs of a prepared corpus; of those that are kept in a shared folder none."""
        assert isinstance(data.source, PreparedSource)
        if self.config.targets:
            return
        frozen, kind = self.roles.at(cast(RoleName, stage.against), stage.max_length), self.config.target_type
        each = bytes_each_row(frozen.dimension(wanted.output), kind)
        for shard, rows in data.source.texts_seen(data.batches, data.steps, wanted.translations):
            key = (stage.against, frozen.limit("text"), wanted.output, shard.number)
            # Stages that learn from one role share its vectors; that of several stages take no less than that of one.
            before, now = self._rows.get(key, 0), len(rows) * each
            self._rows[key] = max(before, now)
            self.targets += max(now - before, 0)
            self.models += max(now - before, 0)

    def add_stage(self, stage: Stage, steps: int) -> None:
        """Add the checkpoints of a stage while it trains, and its model."""
        weights, dense = self.roles.planned_bytes(stage.trains)
        count = checkpoints_kept(steps, stage.budget)
        self.peaks.append(self.models + count * checkpoint_bytes(weights, dense, stage.outer))
        self.models += weights
        self.last = weights
        self._trained.add(stage.trains)


def _rows(digests: NDArray[np.uint64]) -> Digests:
    """Return digests `(N, 2)` as one value each `(N,)`."""
    return np.ascontiguousarray(digests).view("S16").ravel()
