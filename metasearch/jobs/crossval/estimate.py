"""What a study will cost in time and memory, from one measured step of each arm."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metasearch.errors import MetasearchError
from metasearch.jobs.crossval.plan import Cell
from metasearch.jobs.crossval.process import environment, how_ended
from metasearch.spec.recipe import Declared
from metasearch.spec.run import RunConfig


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
class Estimate:
    """What the cells that are left will cost.

    Attributes:
        seconds: of each cell, by its name.
        total: of the study, with its processes side by side.
        memory: that all processes at a time may hold, in bytes.
        machine: memory of the machine, in bytes.
        unknown: cells of which nothing was measured: distillations, and scores of what they make.
    """

    seconds: Mapping[str, float]
    total: float
    memory: int
    machine: int
    unknown: tuple[str, ...]


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
    return measured.load + measured.steps * measured.step + scored


def estimate(cells: Sequence[Cell], measured: Mapping[str, Measured], jobs: int) -> Estimate:
    """Return what cells cost.

    Args:
        cells: that are left to do.
        measured: by arm.
        jobs: processes at a time.
    """
    seconds = {cell.name: seconds_of(cell, measured[cell.arm]) for cell in cells if cell.arm in measured}
    held = sorted((measured[cell.arm].memory for cell in cells if cell.arm in measured), reverse=True)
    return Estimate(
        seconds=seconds,
        total=max([sum(seconds.values()) / jobs, *seconds.values()], default=0.0),
        memory=sum(held[:jobs]),
        machine=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        unknown=tuple(cell.name for cell in cells if cell.arm not in measured),
    )


def measure_arms(cells: Sequence[Cell], threads: int) -> dict[str, Measured]:
    """Measure the first cell of each arm that is no distillation's, one after another, each in a process of its own.

    Raises:
        MetasearchError: a cell cannot be begun; its message is the process's.
    """
    made = {cell.arm for cell in cells if cell.kind == "distill"}
    first: dict[str, Cell] = {}
    for cell in cells:
        if cell.arm not in made:
            first.setdefault(cell.arm, cell)
    return {arm: _measured(cell, threads) for arm, cell in first.items()}


def _measured(cell: Cell, threads: int) -> Measured:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "metasearch.jobs.crossval.measure"],
        input=cell.config.model_dump_json(), capture_output=True, text=True, check=False, env=environment(threads),
    )  # fmt: skip
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        kinds = {kind.exit_code: kind for kind in MetasearchError.__subclasses__()}
        kind = kinds.get(ended.returncode, MetasearchError)
        raise kind(f"{cell.name}: {said[-1] if said else f'its process died ({how_ended(ended.returncode)})'}")
    measured = Measured.model_validate_json(ended.stdout)
    # What the process took beside its step and texts: imports, too, which it cannot see itself.
    return measured.model_copy(update={"load": max(measured.load, time.monotonic() - began - measured.step)})
