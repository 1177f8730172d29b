"""Runs one stage in its own folder: data, targets, learner, and the training loop."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from metasearch.algorithms.base import Learner, TargetSpec
from metasearch.algorithms.losses.base import warn_of_unused
from metasearch.config import registry, yaml
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Stage
from metasearch.encoders.encoder import Encoder, Output
from metasearch.encoders.input_module import BY_TOKEN
from metasearch.errors import ConfigError, DataError, quoted
from metasearch.io import atomic_write
from metasearch.pipelines.distill.evaluator import StageEvaluator
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.distill.sources import Source, StageData, training_data
from metasearch.pipelines.distill.target_cache import TargetStore, build_targets, targets_folder
from metasearch.pipelines.factory import make_gradients, resolved_loss
from metasearch.runs.callbacks import Callback, CallbackGroup, RunLog
from metasearch.runs.folder import RunFolder
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Outcome, Trainer, log_memory, save_failed_batch

log = logging.getLogger(__name__)

_MEAN: dict[Output, Output] = {"tokens": "embedding", "states": "pooled"}
"""Outputs by token → what a dev score and the monitor of collapse see of them: the mean over the tokens of a text."""


def build_stage_learner(stage: Stage, where: str) -> tuple[type[Learner], Any, TargetSpec | None]:
    """Return the class of a stage's learner, its checked options and the targets it wants; loads no weights."""
    learner: type[Learner] = registry.load("learners", stage.learner).LEARNER
    # The batches of a stage are episodes of a single set: chains of one link.
    if 1 not in learner.links:
        raise ConfigError(f"{where}: learner '{stage.learner}' learns from episodes; use `metasearch train`")
    if stage.data not in learner.data:
        raise ConfigError(
            f"{where}: learner '{stage.learner}' learns from {' or '.join(learner.data)} data, not {stage.data}"
        )
    options = yaml.check(stage.options, learner.Options, f"{where}: options")
    # For its errors alone.
    resolved_loss(stage.loss, f"{where}: loss")
    wanted = learner.wanted(options)
    if wanted and stage.against is None:
        raise ConfigError(f"{where}: learner '{stage.learner}' needs a frozen role to learn from, under `against`")
    if not wanted and stage.against is not None:
        raise ConfigError(f"{where}: learner '{stage.learner}' takes no targets; omit `against`")
    if not wanted and stage.monitor == "cosine":
        raise ConfigError(f"{where}: monitor: cosine is to targets, and learner '{stage.learner}' takes none")
    if wanted and wanted.output in BY_TOKEN and stage.monitor == "cosine":
        raise ConfigError(f"{where}: monitor: cosine is between vectors of texts; options.output is {wanted.output}")
    return learner, options, wanted


def run_stage(
    config: DistillConfig,
    name: str,
    roles: RoleEncoders,
    files: RunFolder,
    callback: Callback,
    processes: ProcessGroup = SINGLE_PROCESS,
) -> tuple[Outcome, str]:
    """Train a stage to its end, or resume it; return the outcome, and the stage's data in words.

    The encoder of the trained role changes in place, to the weights of the best dev score. The first of several
    processes writes.
    """
    stage = config.recipe.stages[name]
    encoder = roles.at(stage.trains, stage.max_length)
    data = training_data(config, name, encoder)
    source, batches, total = data
    if processes.first:
        _same_data(files.path, source)
    _say(name, stage, source)
    warn_of_unused(stage.loss)
    store = TargetStore(
        targets_folder(config, files.path.parent), config.target_type, config.compute.precision == "bf16", callback
    )
    learner = processes.rank_zero_first(lambda: _learner(name, stage, roles, encoder, data, store))
    trainer = Trainer(
        learner,
        make_gradients(encoder, config.compute.checkpointing),
        Schedule((Phase(name, batches, total),), total, stage.budget.batch),
        stage.outer,
        stage.budget,
        dev=_dev(name, stage, learner, source, files, lambda: trainer.step),
        callback=CallbackGroup(RunLog(files), callback) if processes.first else callback,
        store=CheckpointStore(files.path) if processes.first else None,
        seed=config.seed,
        precision=config.compute.precision,
        dropout=stage.dropout,
        processes=processes,
    )
    log_memory(trainer)
    with save_failed_batch(files.path) if processes.first else nullcontext():
        return trainer.fit(resume=True), source.described


def _say(name: str, stage: Stage, source: Source) -> None:
    """Log a stage's data, and warn if most of it is held out."""
    for line in filter(None, (source.described, source.report)):
        log.info("stage %s: %s", name, line)
    if len(source.dev) > len(source.train):
        log.warning(
            "stage %s: %d pairs are held out for the dev score, more than the %d that are trained on; lower "
            "stages.%s.corpus.dev, which is %d", name, len(source.dev), len(source.train), name, stage.corpus.dev,
        )  # fmt: skip


def _dev(
    name: str, stage: Stage, learner: Learner, source: Source, files: RunFolder, step: Callable[[], int]
) -> StageEvaluator:
    """Return the dev scorer, which records all measurements with the step."""
    output: Output = getattr(learner.options, "output", "sentence")
    return StageEvaluator(
        learner,
        source.dev,
        source.dev_batches(learner.encoder, stage.budget.batch, name),
        stage.monitor,
        _MEAN.get(output, output),
        note=lambda measured: files.log({"step": step(), **measured}),
        before=StageEvaluator.noted(files.events()),
    )


def _learner(
    name: str, stage: Stage, roles: RoleEncoders, trained: Encoder, data: StageData, store: TargetStore
) -> Learner:
    """Return a stage's learner, with targets for its pairs if it learns from a frozen role."""
    kind, options, wanted = build_stage_learner(stage, f"stage '{name}'")
    if not (wanted and stage.against):
        return kind(trained, stage.loss, options)
    frozen = roles.at(stage.against, stage.max_length)
    targets = build_targets(frozen, trained, wanted, data, store)
    return kind(trained, stage.loss, options, targets)


def _same_data(folder: Path, source: Source) -> None:
    """Write the fingerprint of a stage's data, or raise `DataError` where it began with other data."""
    path = folder / "data.txt"
    before = path.read_text(encoding="utf-8").split()[:1] if path.is_file() else []
    if before not in ([], [source.fingerprint]):  # a crash may leave the file empty
        raise DataError(f"{folder}: the data has changed since the stage began. Restore it, or delete {quoted(folder)}")
    atomic_write(path, f"{source.fingerprint} {source.described}\n")
