"""What a study would do and cost; writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metasearch.jobs.crossval.estimate import Estimate, estimate, measure_arms
from metasearch.jobs.crossval.folder import StudyFolder
from metasearch.jobs.crossval.merge import merged
from metasearch.jobs.crossval.plan import Cell, plan
from metasearch.jobs.crossval.runner import threads_of
from metasearch.spec.study import StudyConfig


@dataclass(frozen=True)
class Forecast:
    """What is left of a study.

    Attributes:
        cells: all of them.
        left: those that are not done.
        estimate: of those.
        jobs: processes at a time.
        threads: of each.
    """

    cells: Sequence[Cell]
    left: Sequence[Cell]
    estimate: Estimate
    jobs: int
    threads: int


def dry_run(config: StudyConfig | None, folder: Path, jobs: int) -> Forecast:
    """Return what `crossval` with the same arguments would do, measured on one step of each arm.

    Raises:
        MetasearchError: what `crossval` would raise at its start, or an arm cannot take a step.
    """
    study = StudyFolder(folder)
    old = study.stored().config if study.begun or config is None else None
    whole = merged(old, config, study.path) if old and config else config or old
    assert whole is not None
    threads = whole.threads or threads_of(jobs)
    cells = plan(whole, study.path)
    left = [cell for cell in cells if not study.done(cell.name)]
    return Forecast(cells, left, estimate(left, measure_arms(left, threads), jobs), jobs, threads)
