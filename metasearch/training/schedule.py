"""Which phase and which meta-batch an outer step belongs to."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

from metasearch.episodes.episode import Episode
from metasearch.spec.recipe import Budget


class Episodes(Protocol):
    """A source of meta-batches; `EpisodeSampler` is one."""

    def batch(self, step: int, size: int) -> list[Episode]:
        """Return the meta-batch of a step."""


@dataclass(frozen=True)
class Phase:
    """A stretch of outer steps on one source of episodes.

    Attributes:
        name: such as `meta-train`.
        episodes: the source.
        steps: outer steps of the phase in each epoch.
    """

    name: str
    episodes: Episodes
    steps: int


@dataclass(frozen=True)
class Schedule:
    """Phases in turn, epoch after epoch, up to a number of outer steps.

    Every epoch visits the same episodes; the paper draws a fixed number of meta-tasks (MAML-Align, appendix C.3).

    Attributes:
        phases: in their order within an epoch.
        total: outer steps.
        batch: episodes in one outer step.
    """

    phases: tuple[Phase, ...]
    total: int
    batch: int

    def at(self, step: int) -> tuple[Phase, int]:
        """Return the phase of a step, counted from 0, and the step within the phase."""
        ends = list(accumulate(phase.steps for phase in self.phases))
        place = step % ends[-1]
        number = bisect_right(ends, place)
        return self.phases[number], place - ends[number] + self.phases[number].steps


def schedule(budget: Budget, sources: Sequence[tuple[str, int, Episodes]], max_steps: int | None) -> Schedule:
    """Return the schedule of a budget.

    Args:
        budget: gives epochs and the size of a meta-batch.
        sources: name, number of episodes and source of each phase.
        max_steps: outer steps at most. When it is less than one epoch, the phases of that epoch shrink in proportion,
            so that a short run still goes through all of them.
    """
    steps = [-(-count // budget.meta_batch) for _, count, _ in sources]
    epoch = sum(steps)
    total = epoch * budget.epochs
    if max_steps is not None and max_steps < total:
        total = max_steps
        if max_steps < epoch:
            ends = [round(done * max_steps / epoch) for done in accumulate(steps, initial=0)]
            steps = [end - start for start, end in pairwise(ends)]
    phases = [Phase(name, source, count) for (name, _, source), count in zip(sources, steps, strict=True) if count]
    return Schedule(tuple(phases), total if phases else 0, budget.meta_batch)
