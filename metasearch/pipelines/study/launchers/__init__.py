"""Launchers submit jobs to this machine, Slurm or a Ray cluster, report their ends, and stop them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from metasearch.config.extras import import_extra
from metasearch.config.study import LauncherConfig
from metasearch.pipelines.study.cell import CellJob
from metasearch.pipelines.study.folder import StudyFolder

_MODULES = {"local": "submitit_jobs", "slurm": "submitit_jobs", "ray": "ray_jobs"}


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

    def __init__(self, folder: StudyFolder, place: LauncherConfig, threads: int, trust_remote_code: bool) -> None:
        self.place = place
        self.folder = folder
        self.threads = threads
        self.active: dict[str, Any] = {}
        self._trust = ("--trust-remote-code",) if trust_remote_code else ()

    def make_job(self, name: str) -> CellJob:
        """Return the job of a cell."""
        return self.job(self.folder.at(name), self.folder.log(name), (*self.options, *self._trust))

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


def open_launcher(folder: StudyFolder, place: LauncherConfig, threads: int, trust_remote_code: bool) -> Launcher:
    """Return the launcher of a study; `ConfigError` if its package is missing."""
    module = f"{__name__}.{_MODULES[place.launcher]}"
    found = import_extra(module, place.launcher, f"--launcher {place.launcher}")
    launchers: Mapping[str, type[Launcher]] = found.LAUNCHERS
    return launchers[place.launcher](folder, place, threads, trust_remote_code)
