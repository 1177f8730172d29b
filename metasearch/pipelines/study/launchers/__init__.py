"""Launchers submit jobs to this machine, Slurm or a Ray cluster, report their ends, and stop them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from metasearch.config.extras import import_extra
from metasearch.pipelines.study.cell import CellJob
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata

_CLASSES = {"local": ("submitit_jobs", "Local"), "slurm": ("submitit_jobs", "Slurm"), "ray": ("ray_jobs", "Ray")}
"""Name of a launcher → its module and class; a module may need packages that are not installed."""


class JobEnd(NamedTuple):
    """The end of a job: exit code, None on a node that died, and a reason such as `OUT_OF_MEMORY`, or empty."""

    code: int | None
    reason: str = ""


class Launcher(ABC):
    """Runs the jobs of a study, one for each cell.

    Attributes:
        job: class of the jobs.
        tick: seconds to wait between two looks.
        active: jobs by cell that have not ended; some perhaps submitted by an earlier runner.
    """

    job: ClassVar[type[CellJob]] = CellJob
    options: ClassVar[Sequence[str]] = ("--cell",)
    tick = 1.0

    def __init__(self, study: StudyFolder, stored: StudyMetadata) -> None:
        self.place = stored.place
        self.study = study
        self.threads = stored.config.threads or 1
        self.active: dict[str, Any] = {}
        self._trust = ("--trust-remote-code",) if stored.config.encoder.trust_remote_code else ()

    def make_job(self, name: str) -> CellJob:
        """Return the job of a cell."""
        return self.job(self.study.at(name), self.study.log(name), (*self.options, *self._trust))

    @abstractmethod
    def submit(self, names: Sequence[str]) -> Collection[str]:
        """Submit cells, whose run folders exist; return the names of the accepted ones."""

    def collect(self) -> Mapping[str, JobEnd]:
        """Return the jobs that have ended since the last call."""
        found = {name: end for name, job in self.active.items() if (end := self.end_of(job))}
        self.active = {name: job for name, job in self.active.items() if name not in found}
        return found

    @abstractmethod
    def end_of(self, job: Any) -> JobEnd | None:
        """Return the end of a job, None while it waits or runs."""

    @abstractmethod
    def stop(self, again: bool) -> None:
        """Let all jobs save what they have and end, or, `again`, end at once; does not wait."""


def open_launcher(study: StudyFolder, stored: StudyMetadata) -> Launcher:
    """Return the launcher of a study; `ConfigError` if its package is missing."""
    name = stored.place.launcher
    module, kind = _CLASSES[name]
    launcher: type[Launcher] = getattr(import_extra(f"{__name__}.{module}", name, f"--launcher {name}"), kind)
    return launcher(study, stored)
