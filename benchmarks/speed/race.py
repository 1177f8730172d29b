"""Ways to take an outer step, each in a process of its own, taking turns.

A process has its own allocator and its own peak memory, so a way is timed and weighed as a user would run it.
"""

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

from benchmarks.common.clock import Seconds, clock
from benchmarks.speed.loops import Loop, Ours, Peer, as_the_authors
from benchmarks.speed.memory import MIB, LiveTensors, peak, reset_peak
from benchmarks.speed.shapes import Setting, texts_of

WAYS: dict[str, Callable[..., Loop]] = {
    "fast": Ours,
    "checkpointing": partial(Ours, checkpointing="layers"),
    "texts": partial(Ours, checkpointing="gradcache"),
    "bf16": partial(Ours, bf16=True),
    "bf16 checkpointing": partial(Ours, checkpointing="layers", bf16=True),
    "plain": partial(Ours, plain=True),
    "learn2learn": Peer,
    "authors": partial(Peer, watch=as_the_authors),
}
TOLERANCE = 1e-4
"""The largest relative difference of two float32 gradients (L2, over all parameters) that counts as rounding."""


class DifferentGradient(click.ClickException):
    """Two ways do not compute the same, so that their times cannot be compared."""


@dataclass(frozen=True)
class Job:
    """A way and what it computes."""

    way: str
    setting: Setting
    threads: int


class Runner:
    """A way that has been set up in this process; texts are tokenised."""

    def __init__(self, job: Job) -> None:
        torch.set_num_threads(job.threads)
        encoder = job.setting.make_encoder()
        batches = job.setting.episodes()
        for role, texts in texts_of(batches).items():
            encoder.lengths(texts, role)
        self.loop = WAYS[job.way](job.setting, encoder, batches)
        self.encoder = encoder
        self.number = 0

    def first(self, path: Path) -> dict[str, float]:
        """Take the first step; write its gradient to a file.

        Returns:
            The peak of memory above that of weights and data, in MiB: `gradient` until the optimiser begins, `step`
            with it.
        """
        self.encoder.encode(["warm"], "question")
        gc.collect()
        start = reset_peak()
        peaks: dict[str, float] = {}

        def before_the_optimiser(*_: Any) -> None:
            if peaks:  # an optimiser that calls another's step comes here twice
                return
            peaks["gradient"] = (peak() - start) / MIB
            kept = {name: p.grad for name, p in self.loop.parameters.items() if p.grad is not None}
            torch.save(kept, path)

        hook = self.loop.optimizer.register_step_pre_hook(before_the_optimiser)
        self.step()
        hook.remove()
        return peaks | {"step": (peak() - start) / MIB}

    def step(self) -> Seconds:
        """Take the next step."""
        gc.collect()
        device = self.encoder.device
        began = clock(device)
        self.loop.step(self.number)
        self.number += 1
        return clock(device) - began

    def tensors(self) -> float:
        """Take the next step; return the peak of the tensors that it makes until the optimiser begins, in MiB.

        Of tensors that this thread makes: with one thread, of all.
        """
        gc.collect()
        self.loop.optimizer.zero_grad(set_to_none=True)
        peaks: list[int] = []
        with LiveTensors(self.encoder.embedder.parameters()) as live:
            hook = self.loop.optimizer.register_step_pre_hook(lambda *_: peaks.append(live.peak))
            self.step()
        hook.remove()
        return peaks[0] / MIB


class Apart:
    """A way that has been set up in a fresh process."""

    def __init__(self, job: Job) -> None:
        self._pool = ProcessPoolExecutor(1, get_context("spawn"))
        self._pool.submit(_begin, job).result()

    def first(self, path: Path) -> dict[str, float]:
        """As `Runner.first`."""
        peaks: dict[str, float] = self._pool.submit(_call, "first", path).result()
        return peaks

    def step(self) -> Seconds:
        """As `Runner.step`."""
        seconds: Seconds = self._pool.submit(_call, "step").result()
        return seconds

    def tensors(self) -> float:
        """As `Runner.tensors`."""
        size: float = self._pool.submit(_call, "tensors").result()
        return size

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


@dataclass
class Race:
    """Way → seconds of each round, memory peaks (`Runner.first`), and relative error of the first gradient."""

    seconds: dict[str, list[Seconds]] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)


def race(
    jobs: dict[str, Job], rounds: int, apart: bool, folder: Path, each: Callable[[], object] | None = None
) -> Race:
    """Let ways take turns, in an order that turns round with each round, and call `each` in each round.

    Raises:
        DifferentGradient: the gradient of a way differs from the first way's by more than rounding.
    """
    outcome = Race(seconds={way: [] for way in jobs})
    with ExitStack() as stack:
        ready = {}
        for way, job in jobs.items():
            ready[way] = stack.enter_context(running(job, apart))
            outcome.memory[way] = ready[way].first(folder / f"{way}.pt")
        ours, *others = jobs
        for way in others:
            outcome.errors[way] = _compared(folder, ours, way)
        for number in range(rounds):
            for way in sorted(ready, key=list(jobs).index, reverse=number % 2 == 1):
                outcome.seconds[way].append(ready[way].step())
            if each:
                each()
    return outcome


def relative_error(gradient: dict[str, Tensor], reference: dict[str, Tensor]) -> float:
    """Return ‖gradient − reference‖₂ / ‖reference‖₂ over all parameters; one without a gradient has zeros."""
    difference = size = 0.0
    for name in sorted(gradient.keys() | reference.keys()):
        pair = [_dense(side[name]) if name in side else None for side in (gradient, reference)]
        mine, theirs = (torch.zeros(()) if side is None else side for side in pair)
        difference += (mine - theirs).double().square().sum().item()
        size += theirs.double().square().sum().item()
    return float((difference / size) ** 0.5)


def _compared(folder: Path, ours: str, way: str) -> float:
    mine, theirs = (torch.load(folder / f"{name}.pt", weights_only=True) for name in (ours, way))
    (folder / f"{way}.pt").unlink()
    error = relative_error(mine, theirs)
    if not error <= TOLERANCE:
        raise DifferentGradient(f"the gradients of '{ours}' and '{way}' differ by {error:.1e}, more than {TOLERANCE:g}")
    return error


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


@contextmanager
def running(job: Job, apart: bool) -> Iterator["Runner | Apart"]:
    """Set a way up, in a process of its own if `apart`."""
    if not apart:
        yield Runner(job)
        return
    process = Apart(job)
    try:
        yield process
    finally:
        process.close()


_here: list[Runner] = []
"""The way of this process, where it is one of `Apart`."""


def _begin(job: Job) -> None:
    _here.append(Runner(job))


def _call(name: str, *arguments: Any) -> Any:
    return getattr(_here[0], name)(*arguments)
