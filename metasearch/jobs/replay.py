"""`metasearch replay`: one outer step of a run alone, beside what the run's log says of it. Nothing is written."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from metasearch.data.benchmark import load_benchmark
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError
from metasearch.jobs import compose
from metasearch.jobs.lifecycle import ENCODER, require_same_data, require_same_weights, require_trust
from metasearch.jobs.resume import kind_of
from metasearch.jobs.task_encoder import encoder_of
from metasearch.jobs.train import repeatable, trainer_of, with_map_before
from metasearch.runs.folder import RunFolder
from metasearch.runs.listener import SILENT, Listener
from metasearch.runs.versions import differing, processor, versions
from metasearch.spec.recipe import Engine
from metasearch.spec.run import DataRef, RunConfig
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.gradients import norms_by_part, rows_or_all
from metasearch.training.step import NonFiniteStep
from metasearch.training.trainer import Trainer

_FACTS = ("step", "total", "phase")
"""Keys of an event of the log that are no terms of the step."""
_NOT_TRAINED = {
    "distill": "is a distillation: the steps of its stages cannot be taken alone",
    "score": "is an encoder scored as it is: it has no steps",
    "study": "is a study; name one of the runs in its cells/",
}


@dataclass(frozen=True)
class Taken:
    """A step as one kind of gradients gives it.

    Attributes:
        gradients: `fast` or `reference`.
        terms: loss, its terms, the norm of the gradient (`grad`), and the rate where it changes.
        norms: part of the network → norm of its gradient.
        unfinite: names of parameters whose gradient is not finite.
        problem: what is wrong where the loss or the norm is not finite.
    """

    gradients: Engine
    terms: Mapping[str, float]
    norms: Mapping[str, float]
    unfinite: Sequence[str]
    problem: str | None


@dataclass(frozen=True)
class Replayed:
    """An outer step that was taken again.

    Attributes:
        step: its number, from 1.
        total: outer steps that the run was to have.
        phase: such as `meta-train`.
        began: step of the checkpoint that it was reached from; 0 is the starting encoder.
        episodes: its meta-batch.
        own: gradients that the run takes.
        taken: the step by each kind of gradients that was asked for.
        logged: terms of the step as the run logged them; None where it did not get that far.
        apart: norm of the difference of two gradients, divided by that of the second; None where there is one alone.
        dropout: whether dropout was on, for which the two kinds draw other random numbers.
        elsewhere: what differs between here and where the run was scored first, on which bits depend.
    """

    step: int
    total: int
    phase: str
    began: int
    episodes: Sequence[Episode]
    own: Engine
    taken: Sequence[Taken]
    logged: Mapping[str, float] | None
    apart: float | None
    dropout: bool
    elsewhere: Sequence[str]

    def differing(self, taken: Taken) -> dict[str, float]:
        """Return term → relative difference to the log, of all terms that are not the same bits there."""
        logged = self.logged or {}
        off = {}
        for name in dict.fromkeys((*logged, *taken.terms)):
            now, before = taken.terms.get(name, math.nan), logged.get(name, math.nan)
            if now != before:
                off[name] = abs(now - before) / abs(before) if before else math.inf
        return off


def replay(
    folder: Path,
    step: int,
    gradients: Sequence[Engine] = (),
    trust_remote_code: bool = False,
    listener: Listener = SILENT,
) -> Replayed:
    """Take one outer step of a run of `metasearch train` again, up to its gradient.

    It is reached from the newest checkpoint before it, or else from the starting encoder, by the steps between with
    the run's own kind of gradients.

    Args:
        folder: the run folder; nothing in it changes.
        step: number of the step, from 1.
        gradients: how to take its gradient, `fast` or `reference`; by default as the run does.
        trust_remote_code: run code that comes with an encoder; must be said again where the run began with it.
        listener: hears of the steps on the way.

    Raises:
        ConfigError: the folder holds no training, or there is no such step.
        DataError: the data is not what the run began with.
        EncoderError: the encoder is not the one that the run began with.
        RunFolderError: the folder is no run, or its checkpoint is of another learner.
        NonFiniteError: a step on the way is not finite.
    """
    kind = kind_of(folder)
    if kind != "train":
        raise ConfigError(f"{folder} {_NOT_TRAINED[kind]}")
    files, stored = RunFolder.open(folder, RunConfig)
    config = stored.config
    require_trust(folder, config.trust_remote_code, trust_remote_code)
    events = {event["step"]: event for event in files.events() if "loss" in event}
    _require_reached(files, step, max(events, default=0))
    benchmark = load_benchmark(DataRef.of(config), config.mode).trained_on(config.recipe.translate)
    require_same_data(folder, stored.data_fingerprint, benchmark.data.fingerprint)
    encoder = encoder_of(config, benchmark)
    require_same_weights(f"{folder}: its encoder", stored.weights.get(ENCODER, encoder.origin), encoder.origin)
    with_map_before(encoder, benchmark, config.recipe, listener)
    trainer = trainer_of(config, benchmark, encoder, CheckpointStore(files.path), listener)
    if step > trainer.schedule.total:
        raise ConfigError(f"--step {step}: {folder} has outer steps 1 to {trainer.schedule.total}")
    try:
        began = trainer.go_to(step)
    except NonFiniteStep as error:
        raise repeatable(error, folder) from error
    kinds = tuple(gradients) or (config.engine,)
    return _taken(trainer, kinds, config.engine, began, events.get(step), _elsewhere(files))


def _require_reached(files: RunFolder, step: int, last: int) -> None:
    """Raise `ConfigError` where a run ended before a step, for want of patience say."""
    if step < 1:
        raise ConfigError(f"--step {step}: outer steps are counted from 1")
    # Without a log nobody knows.
    if files.finished and last and step > last:
        raise ConfigError(f"--step {step}: {files.path} ended after outer step {last}")


def _taken(
    trainer: Trainer,
    kinds: Sequence[Engine],
    own: Engine,
    began: int,
    event: Mapping[str, Any] | None,
    elsewhere: Sequence[str],
) -> Replayed:
    taken, found = [], []
    for kind in kinds:
        # The run's own function may have settled on the first meta-batch how it goes on.
        function = trainer.gradients if kind == own else compose.make_gradients(trainer.learner.encoder, kind)
        step = trainer.gradient(function)
        parameters = trainer.parameters
        wrong = [n for n, p in parameters.items() if p.grad is not None and not torch.isfinite(rows_or_all(p)).all()]
        taken.append(Taken(kind, step.terms, norms_by_part(parameters), wrong, step.problem()))
        if len(kinds) > 1:
            found.append([None if p.grad is None else p.grad.detach().to_dense() for p in parameters.values()])
    logged = None if event is None else {name: value for name, value in event.items() if name not in _FACTS}
    return Replayed(
        step.number,
        trainer.schedule.total,
        step.phase,
        began,
        step.episodes,
        own,
        taken,
        logged,
        _apart(*found) if found else None,
        trainer.dropout,
        elsewhere,
    )


def _elsewhere(files: RunFolder) -> list[str]:
    """Return what a run's first score and its facts say of where it was made, as far as it is not so here."""
    found = []
    row = next(iter(files.results()), {})
    if name := differing(row.get("versions", {}), versions()) if "versions" in row else None:
        found.append(f"{name} {row['versions'].get(name)}, here {versions().get(name)}")
    if row.get("processor", processor()) != processor():
        found.append(f"processor {row['processor']}, here {processor()}")
    threads = files.facts().get("threads", torch.get_num_threads())
    if threads != torch.get_num_threads():
        found.append(f"{threads} threads, here {torch.get_num_threads()} (OMP_NUM_THREADS={threads} gives as many)")
    return found


def _apart(one: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> float:
    """Return ‖one − other‖₂ / ‖other‖₂ of two gradients, dense or None for 0."""
    squares, whole = 0.0, 0.0
    for a, b in zip(one, other, strict=True):
        if a is not None or b is not None:
            first, second = (torch.zeros(()) if each is None else each.double().cpu() for each in (a, b))
            squares += (first - second).square().sum().item()
            whole += second.square().sum().item()
    return math.sqrt(squares / whole) if whole else math.inf if squares else 0.0
