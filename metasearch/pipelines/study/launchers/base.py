"""What a launcher is: it begins the processes of cells somewhere, sees how they are, and stops them.

The runner of a study does everything else, the same for all launchers: it decides which cells may run, makes their
folders, follows their logs, and writes the table.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from metasearch.config.extras import import_extra
from metasearch.config.launchers import LauncherConfig
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata


@dataclass(frozen=True)
class JobStatus:
    """What a launcher sees of a cell that it began.

    Attributes:
        state: `queued` where nothing of it runs yet.
        code: exit code of what has ended, as of `subprocess`; None where there is none, as of a node that died.
        why: what the cluster says of its end, such as `TIMEOUT`; empty where it says nothing.
        again: whether it was stopped from outside, through no fault of its own, and is to go on.
    """

    state: Literal["queued", "running", "ended"]
    code: int | None = None
    why: str = ""
    again: bool = False


QUEUED, RUNNING = JobStatus("queued"), JobStatus("running")


class Launcher(Protocol):
    """Begins the processes of a study's cells; made of a `LauncherConfig`, the study's folder and what it is to do.

    Attributes:
        tick: seconds to wait between two looks.
    """

    tick: float

    def __init__(self, place: LauncherConfig, study: StudyFolder, stored: StudyMetadata) -> None: ...

    def start(self, names: Sequence[str]) -> Collection[str]:
        """Begin cells, whose folders are made; return those that could be. The others may be begun later.

        Raises:
            ConfigError: none of them ever can be, with these settings.
            RunFolderError: a file cannot be written.
        """

    def look(self) -> Mapping[str, JobStatus]:
        """Return every cell that was begun, until and with the first time that it has ended.

        That may have been by an earlier runner, which was killed, where its cells go on without it.
        """

    def stop(self, kill: bool) -> None:
        """Ask all cells to save what they have reached and end, or kill them; does not wait. Raises nothing."""


def launcher_of(place: LauncherConfig) -> type[Launcher]:
    """Return the launcher of a place; `ConfigError` where a package that it needs is missing."""
    name = place.launcher
    found: type[Launcher] = import_extra(f"{__package__}.{name}", name, f"--launcher {name}").LAUNCHER
    return found
