"""The files of a launcher's jobs: their logs, and the numbers of those in a cluster's queue."""

import json
from pathlib import Path

from metasearch.errors import RunFolderError
from metasearch.io import read_bytes


class JobFolder:
    """Where jobs work, and what a launcher keeps about them in `jobs/`."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.jobs = self.path / "jobs"
        self.queue = self.jobs / "cells.json"
        self.stop = self.jobs / "stop"

    def at(self, name: str) -> Path:
        """Return the folder that a job resumes."""
        return self.path

    def log(self, name: str) -> Path:
        """Return a job's log."""
        return self.jobs / f"{name}.log"

    def queued(self) -> dict[str, str]:
        """Return the jobs that a runner has submitted to a cluster and has not seen to end, with their numbers."""
        try:
            return {str(name): str(number) for name, number in json.loads(read_bytes(self.queue)).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise RunFolderError(
                f"{self.queue} cannot be read: {error}. Delete it when the queue has no job of it"
            ) from None
