"""Phase, meta-batch and rate per outer step, as pure functions of the step, so a resumed run has the same."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

from metasearch.config.recipe import Budget, Outer
from metasearch.episodes.episode import Episode


class Episodes(Protocol):
    """A source of meta-batches, such as `EpisodeSampler`."""

    def batch(self, step: int, size: int) -> list[Episode]:
        """Return a step's meta-batch."""


@dataclass(frozen=True)
class Phase:
    """Outer steps on one source of episodes, such as `meta-train`; `steps` per epoch."""

    name: str
    episodes: Episodes
    steps: int


@dataclass(frozen=True)
class Schedule:
    """Alternating phases, epoch after epoch, up to a number of outer steps.

    Every epoch visits the same episodes; the paper draws a fixed number of meta-tasks (MAML-Align, appendix C.3).
    `batch` is the number of episodes in one outer step.
    """

    phases: tuple[Phase, ...]
    total: int
    batch: int

    def at(self, step: int) -> tuple[Phase, int]:
        """Return a step's phase, counted from 0, and its step within the phase."""
        ends = list(accumulate(phase.steps for phase in self.phases))
        place = step % ends[-1]
        number = bisect_right(ends, place)
        # `bisect_right`, as the step at which a phase ends is the first of the next.
        return self.phases[number], place - ends[number] + self.phases[number].steps


def schedule(budget: Budget, sources: Sequence[tuple[str, int, Episodes]], max_steps: int | None) -> Schedule:
    """Return a budget's schedule, from name, number of episodes and source per phase.

    When `max_steps` is less than one epoch, the phases of that epoch shrink in proportion, so that a short run still
    goes through all of them.
    """
    steps = [-(-count // budget.meta_batch) for _, count, _ in sources]
    epoch = sum(steps)
    total = budget.epochs * epoch if max_steps is None else min(budget.epochs * epoch, max_steps)
    if total < epoch:
        # Ends are rounded, not lengths, so that the lengths add up to `total`.
        ends = [round(done * total / epoch) for done in accumulate(steps, initial=0)]
        steps = [end - start for start, end in pairwise(ends)]
    phases = [Phase(name, source, count) for (name, _, source), count in zip(sources, steps, strict=True) if count]
    return Schedule(tuple(phases), total if phases else 0, budget.meta_batch)


def rate(step: int, total: int, settings: Outer) -> float:
    """Return a step's rate factor, above 0 and at most 1; steps count from 1.

    It rises in a line over the w steps of the warm-up: 1/w, 2/w, ... 1. Then it falls, in a line or as half a cosine,
    so that it would be 0 at the step after the last.
    """
    warmup = round(settings.warmup * total)
    if step < warmup:
        return step / warmup
    top = max(warmup, 1)
    past = (step - top) / (total + 1 - top)
    if settings.decay == "linear":
        return 1 - past
    if settings.decay == "cosine":
        return (1 + math.cos(math.pi * past)) / 2
    return 1.0
