"""Cells as processes of this machine."""

from collections.abc import Collection, Mapping, Sequence
from subprocess import Popen

from metasearch.config.launchers import LauncherConfig
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers.base import RUNNING, JobStatus
from metasearch.pipelines.study.process import start_cell


class Local:
    """Each cell is a child of this process, and stops with a checkpoint when this one ends, however that happens."""

    tick = 0.25

    def __init__(self, place: LauncherConfig, study: StudyFolder, stored: StudyMetadata) -> None:
        self._study = study
        self._config = stored.config
        self._processes: dict[str, Popen[bytes]] = {}

    def start(self, names: Sequence[str]) -> Collection[str]:
        """Begin cells, each at once."""
        threads, trust = self._config.threads or 1, self._config.encoder.trust_remote_code
        for name in names:
            self._processes[name] = start_cell(self._study, name, threads, trust)
        return names

    def look(self) -> Mapping[str, JobStatus]:
        """Return how the processes are."""
        codes = {name: process.poll() for name, process in self._processes.items()}
        self._processes = {name: each for name, each in self._processes.items() if codes[name] is None}
        return {name: RUNNING if code is None else JobStatus("ended", code) for name, code in codes.items()}

    def stop(self, kill: bool) -> None:
        """Send SIGTERM, at which a cell saves a checkpoint, or SIGKILL."""
        for process in self._processes.values():
            # `Popen` signals no process that has ended.
            (process.kill if kill else process.terminate)()


LAUNCHER = Local
