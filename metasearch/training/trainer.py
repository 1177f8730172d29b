"""The training loop, whole.

    dev()                                          # the baseline, step 0
    for step in schedule:                          # meta-train, meta-valid, meta-train, ...
        episodes = phase.episodes.batch(step)
        loss = gradients(learner, episodes)        # a learner's outer loss, and its gradient in `.grad`
        stop with an error unless loss and gradients are finite
        clip the gradient;  set the step's rate
        optimizer.step();  learner.after_step()
        every eval_every steps, and at the end:
            dev() → best so far?  → checkpoint  → out of patience?
    weights = best

Nothing else in the package steps an optimiser.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, NoReturn

import torch
from torch import Tensor

from metasearch.algorithms.base import Learner
from metasearch.config.precision import Precision
from metasearch.config.recipe import EvalSchedule, Outer
from metasearch.config.seeding import seed_of
from metasearch.encoders.device import fast_in_bfloat16
from metasearch.encoders.random_state import seeded
from metasearch.episodes.episode import Episode, brief, whole
from metasearch.errors import NonFiniteError, RunFolderError, first_line
from metasearch.io import atomic_write
from metasearch.runs import signals
from metasearch.runs.callbacks import Callback
from metasearch.training import optimizer as outer
from metasearch.training.checkpoint import Checkpoint, CheckpointStore
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.schedule import Schedule, rate

log = logging.getLogger(__name__)
Reason = Literal["finished", "patience", "interrupted"]


@dataclass
class EarlyStopping:
    """Stops after `patience` outer steps without a better dev score (MAML-Align paper, appendix C.3); 0 never stops.

    Only scores of trained weights count, so that a learner which does harm is reported as doing so.
    """

    patience: int
    best_score: float | None = None
    best_step: int = 0
    last_step: int = 0

    def update(self, step: int, score: float) -> bool:
        """Record a score; return whether it is the best so far (the first among equals)."""
        self.last_step = step
        better = self.best_score is None or score > self.best_score
        if better:
            self.best_score, self.best_step = score, step
        return better

    @property
    def exhausted(self) -> bool:
        """Whether patience had run out when the last score was taken."""
        return 0 < self.patience <= self.last_step - self.best_step


@dataclass(frozen=True)
class Outcome:
    """Result of a training; `baseline` is the dev score before the first step.

    `best_score` and `best_step` belong to the final weights; the score is None when no step was taken.
    """

    steps: int
    reason: Reason
    baseline: float | None
    best_score: float | None
    best_step: int

    @property
    def ended(self) -> str:
        """Reason in words."""
        return {
            "patience": "the dev score stopped improving", "finished": "all steps done", "interrupted": "interrupted",
        }[self.reason]  # fmt: skip


def rows_or_all(parameter: Tensor) -> Tensor:
    """Return a parameter's gradient, or a sparse one's rows, in the same memory."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()  # no copy, except for a sparse layer of a learner
    return parameter.grad.values()


def norm_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return dense tensors' joint Euclidean norm."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]))
    return norm


def clip(tensors: list[Tensor], longest: float, norm: Tensor) -> None:
    """Scale tensors with this norm down to the longest allowed (torch's `clip_grads_with_norm_` takes dense ones)."""
    # 1e-6 as in torch. Multiplied where the factor is 1, too: to ask for it first would wait for the GPU.
    torch._foreach_mul_(tensors, torch.clamp(longest / (norm + 1e-6), max=1.0))


@dataclass
class Trainer:
    """Runs a learner through a schedule.

    Args:
        learner: turns episodes into a loss.
        gradients: takes the gradient of that loss.
        schedule: episodes of each outer step.
        settings: settings of the outer optimiser.
        pace: evaluation interval, patience, and the shards of a step.
        dev: returns the dev score of the present weights; higher is better. Without it, the last weights are kept.
        callback: receives steps and scores.
        store: stores checkpoints; None keeps them in memory only.
        seed: seed of the run; step i draws its dropout from (seed, i).
        precision: `bfloat16` runs forward passes in bfloat16 where that is safe (torch autocast).
        dropout: whether the encoder's dropout is on in training.
        baseline: dev score before the first step, if known.
        processes: share the shards of a step; the first one scores, and has store and callback.
    """

    learner: Learner
    gradients: OuterGradients
    schedule: Schedule
    settings: Outer
    pace: EvalSchedule
    dev: Callable[[], float] | None
    callback: Callback
    store: CheckpointStore | None = None
    seed: int = 0
    precision: Precision = "float32"
    dropout: bool = False
    baseline: float | None = None
    processes: ProcessGroup = SINGLE_PROCESS
    _best: dict[str, Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.parameters = dict(self.learner.named_parameters())
        self.optimizer = outer.build(self.parameters, self.settings)
        self.stopping = EarlyStopping(self.pace.patience)
        self.step = 0

    def fit(self, resume: bool = False) -> Outcome:
        """Train, from the store's checkpoint if asked to resume, and leave the best dev score's weights in place.

        Raises:
            NonFiniteError: a loss or a gradient is not finite; the weights are those before that step.
            RunFolderError: a checkpoint is damaged or cannot be written.
        """
        on_cpu = self.learner.encoder.device.type == "cpu"
        if self.precision == "bfloat16" and on_cpu and not fast_in_bfloat16():
            log.warning("bfloat16 may be slower than float32 on this CPU; use --precision float32")
        self.learner.begin(self.schedule.total)
        if checkpoint := self.processes.broadcast_object(lambda: self.store.load() if resume and self.store else None):
            self._restore(checkpoint)
        else:
            self.processes.broadcast_tensors([*self.parameters.values(), *self.learner.state().values()])
            if dev := self.dev:
                known = self.baseline
                self.baseline = self.processes.broadcast_object(lambda: dev() if known is None else known)
                self.callback.on_dev(0, self.baseline, False)
        with signals.deferred():
            reason = self._loop()
        self.learner.train(False)
        if reason != "interrupted" or self._best:
            self._put(self._best)
        return Outcome(self.step, reason, self.baseline, self.stopping.best_score, self.stopping.best_step)

    def _loop(self) -> Reason:
        while True:
            # The same answer in every process, or one would wait for the others for ever.
            if number := self.processes.all_reduce_max(signals.received()):
                signals.note(number)
                self._checkpoint()
                return "interrupted"
            if self.step >= self.schedule.total:
                return "finished"
            # Asked before a step, so a resumed run whose patience had run out takes none.
            if self.stopping.exhausted:
                return "patience"
            self._outer_step()
            every = self.pace.eval_every
            if self.dev and (self.step == self.schedule.total or (every and self.step % every == 0)):
                self._evaluate(self.dev)

    def _outer_step(self) -> None:
        phase, position = self.schedule.at(self.step)
        episodes = phase.episodes.batch(position, self.schedule.batch)
        self.learner.train(self.dropout)
        self.optimizer.zero_grad(set_to_none=True)
        device = self.learner.encoder.device.type
        # By the number of the step, so a resumed run draws the dropout of one that never stopped.
        draws = seeded(seed_of(self.seed, "step", self.step))
        with draws, torch.autocast(device, torch.bfloat16, enabled=self.precision == "bfloat16"):
            loss = self.gradients(self.learner, episodes, self.pace.shards, self.processes)
        norm = norm_of(self._gradients())
        # A finite loss can have a gradient that is not.
        for value, what in ((loss.total, "loss"), (norm, "gradient norm")):
            if not torch.isfinite(value):
                self._refuse(f"{phase.name} {what}", value, loss.terms, episodes)
        rate = self._set_rate()
        if self.settings.clip:
            clip(self._gradients(), self.settings.clip, norm)
        self.optimizer.step()
        self.learner.after_step()
        self.step += 1
        told = {"loss": loss.total.item(), **loss.terms, "grad": norm.item(), **rate}
        self.callback.on_step(self.step, self.schedule.total, phase.name, told)

    def _refuse(self, what: str, value: Tensor, terms: Mapping[str, float], episodes: Sequence[Episode]) -> NoReturn:
        """Raise `NonFiniteError` before the update; a run folder gets the texts of the step."""
        number, each = self.step + 1, ", ".join(f"{name} {term:.4g}" for name, term in terms.items())
        told = (
            f"the {what} at outer step {number} is {value.item()} ({each}), of episodes {brief(episodes)}; the weights "
            "were not updated. Try a smaller rate: outer.lr, or options.inner_lr where there is one"
        )
        if self.store is not None:
            path = self.store.folder.with_name(f"nonfinite-step-{number}.txt")
            lines = []
            for i, episode in enumerate(episodes, 1):
                lines += [f"episode {i} of {len(episodes)}: {episode.arrangement}", *(f"  {x}" for x in whole(episode))]
            atomic_write(path, "\n".join(lines) + "\n")
            told += f". The texts of this step are in {path}"
        raise NonFiniteError(told)

    def _gradients(self) -> list[Tensor]:
        # All other rows of a sparse gradient are 0, so norm and clipping are the whole gradient's.
        return [rows_or_all(p) for p in self.parameters.values() if p.grad is not None]

    def _set_rate(self) -> dict[str, float]:
        """Give the optimiser the next step's rate; return it as a term where it changes over time."""
        lr = self.settings.lr * rate(self.step + 1, self.schedule.total, self.settings)
        # Set at every step, so a checkpoint needs no rate.
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return {"lr": lr} if self.settings.warmup or self.settings.decay != "none" else {}

    def _evaluate(self, dev: Callable[[], float]) -> None:
        score = self.processes.broadcast_object(dev)
        best = self.stopping.update(self.step, score)
        if best:
            # On the CPU, to leave a GPU its memory; cloned, as `cpu` copies nothing that is there already.
            self._best = {name: p.detach().cpu().clone() for name, p in self.parameters.items()}
        self.callback.on_dev(self.step, score, best)
        # Last, so that the checkpoint has this score and these best weights.
        self._checkpoint()

    def _checkpoint(self) -> None:
        if self.store is None:
            return
        state = {"step": self.step, "baseline": self.baseline, "stopping": asdict(self.stopping)}
        weights = {name: parameter.detach() for name, parameter in self.parameters.items()}
        optimizer = outer.state(self.optimizer, self.parameters)
        self.store.save(Checkpoint(weights, optimizer, self._best, self.learner.state(), state))

    def _restore(self, checkpoint: Checkpoint) -> None:
        try:
            self._put(checkpoint.weights)
            outer.restore(self.optimizer, self.parameters, checkpoint.optimizer)
            self.learner.load_state(checkpoint.learner)
            self._best = dict(checkpoint.best)
            self.step = int(checkpoint.state["step"])
            self.baseline = checkpoint.state["baseline"]
            self.stopping = EarlyStopping(**checkpoint.state["stopping"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise RunFolderError(
                f"the checkpoint does not fit this learner and encoder: {first_line(error)}"
            ) from error

    @torch.no_grad()
    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, value in weights.items():
            # In place: the optimiser and the networks of threads hold these very tensors.
            self.parameters[name].copy_(value)


def log_memory(trainer: Trainer) -> None:
    """Log the size of weights, optimiser state and first meta-batch; activations grow with the batch's tokens."""
    if not trainer.schedule.total:
        return
    phase, position = trainer.schedule.at(0)
    episodes = phase.episodes.batch(position, trainer.schedule.batch)
    sets = [examples for episode in episodes for examples in episode.sets]
    texts = sorted({text for examples in sets for example in examples.examples for text in example.texts})
    encoder = trainer.learner.encoder
    trained = sum(parameter.nbytes for parameter in trainer.parameters.values())
    weights = encoder.size + sum(tensor.nbytes for tensor in trainer.learner.state().values())
    log.info(
        "memory: weights %s, optimiser %s, batch %d texts of %d tokens, on %s",
        format_bytes(weights),
        format_bytes(outer.MOMENTS[trainer.settings.optimizer] * trained),
        len(texts),
        encoder.lengths(texts, "text").sum(),
        encoder.device,
    )


def format_bytes(size: int) -> str:
    """Return bytes in MiB or GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
