"""What is left of a study, and what it will cost in time and memory, from one measured step of each arm."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metasearch import signals
from metasearch.errors import MetasearchError
from metasearch.jobs.crossval.folder import StudyFolder
from metasearch.jobs.crossval.merge import merged
from metasearch.jobs.crossval.plan import Cell, plan
from metasearch.jobs.crossval.process import environment, how_ended, threads_of
from metasearch.spec.declared import Declared
from metasearch.spec.launchers import Place
from metasearch.spec.run import RunConfig
from metasearch.spec.study import StudyConfig


class Measured(Declared):
    """What was measured of an arm.

    Attributes:
        load: seconds to begin with: imports, data and weights.
        step: seconds of an outer step.
        steps: that a run may take.
        dev: seconds to encode what the dev score needs.
        test: seconds to encode the test data.
        memory: the most that the process held, in bytes.
    """

    load: float
    step: float
    steps: int
    dev: float
    test: float
    memory: int


@dataclass(frozen=True)
class Forecast:
    """What is left of a study, and what that costs.

    Attributes:
        cells: all cells of the study.
        left: those that are not done.
        measured: what was measured, by arm; nothing of distillations, nor of scores of what they make.
        jobs: number of processes at a time.
        threads: number of threads of each process.
        together: whether processes share this machine, and so its memory.
    """

    cells: Sequence[Cell]
    left: Sequence[Cell]
    measured: Mapping[str, Measured]
    jobs: int
    threads: int
    together: bool = True

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each measured cell, by its name."""
        known = [cell for cell in self.left if cell.arm in self.measured]
        return {cell.name: seconds_of(cell, self.measured[cell.arm]) for cell in known}

    @property
    def total(self) -> float:
        """Seconds of the study, with its processes side by side."""
        seconds = self.seconds.values()
        # The lower bounds of every schedule: all processes busy throughout, and the longest cell alone.
        return max([sum(seconds) / self.jobs, *seconds], default=0.0)

    @property
    def memory(self) -> int:
        """Bytes that all processes at a time may hold on one machine."""
        held = [self.measured[cell.arm].memory for cell in self.left if cell.arm in self.measured]
        # The worst moment: the largest cells side by side.
        return sum(sorted(held, reverse=True)[: self.jobs if self.together else 1])


def forecast_of(
    config: StudyConfig | None, folder: Path, jobs: int | None = None, place: Place | None = None
) -> Forecast:
    """Return what `crossval` with the same arguments would do, measured on one step of each arm; writes nothing.

    Steps are measured on this machine, wherever the cells will run.

    Raises:
        MetasearchError: what `crossval` would raise at its start, or an arm cannot take a step.
    """
    study = StudyFolder(folder)
    # `stored` raises where there is nothing to go on with; what has come to nothing may be configured anew.
    old = study.stored().config if config is None or (study.begun and study.reached) else None
    whole = merged(old, config, study.path) if old and config else config or old
    assert whole is not None
    place = place or study.place()
    jobs = jobs or place.jobs
    threads = whole.threads or threads_of(place, jobs)
    cells = plan(whole, study.path)
    left = [cell for cell in cells if not study.done(cell.name)]
    return Forecast(cells, left, measure_arms(left, threads), jobs, threads, place.together)


def evaluations(config: RunConfig, steps: int) -> int:
    """Return how many dev scores a run takes: one every `eval_every` steps, and one behind the last."""
    every = config.recipe.budget.eval_every
    return -(-steps // every) if every else 1


def seconds_of(cell: Cell, measured: Measured) -> float:
    """Return how long a cell takes at most: early stopping may end it before."""
    config = cell.config
    if not isinstance(config, RunConfig):
        return measured.load + measured.dev + measured.test
    # Zero-shot's scores are taken over; dev is scored once more at the end.
    scored = (evaluations(config, measured.steps) + 1) * measured.dev + measured.test
    if merge := config.recipe.merge:  # with each share once, then the chosen weights on both parts
        scored += (len(set(merge.alphas)) + 1) * measured.dev + measured.test
    return measured.load + measured.steps * measured.step + scored


def measure_arms(cells: Sequence[Cell], threads: int) -> dict[str, Measured]:
    """Measure the first cell of each arm that is no distillation's, one after another, each in a process of its own.

    Raises:
        MetasearchError: a cell cannot be begun; its message is the process's.
    """
    # Scores of a student have its arm, too, and there is no student to measure before its distillation has run.
    distilled = {cell.arm for cell in cells if cell.kind == "distill"}
    first: dict[str, Cell] = {}
    for cell in cells:
        if cell.arm not in distilled:
            first.setdefault(cell.arm, cell)
    return {arm: _measured(cell, threads) for arm, cell in first.items()}


def _measured(cell: Cell, threads: int) -> Measured:
    began = time.monotonic()
    # At work: without an end of its own, the process would go on alone.
    with signals.AtWork():
        ended = subprocess.run(
            [sys.executable, "-m", "metasearch.jobs.crossval.measure"],
            input=cell.config.model_dump_json(), capture_output=True, text=True, check=False, env=environment(threads),
        )  # fmt: skip
    if ended.returncode:
        lines = ended.stderr.strip().splitlines()
        # The exit code says which error the process met, and its last line the message: libraries may warn before.
        kinds = {kind.exit_code: kind for kind in MetasearchError.__subclasses__()}
        kind = kinds.get(ended.returncode, MetasearchError)
        raise kind(f"{cell.name}: {lines[-1] if lines else f'its process died ({how_ended(ended.returncode)})'}")
    measured = Measured.model_validate_json(ended.stdout)
    # What the process took beside its step and texts: imports, too, which it cannot see itself.
    return measured.model_copy(update={"load": max(measured.load, time.monotonic() - began - measured.step)})
