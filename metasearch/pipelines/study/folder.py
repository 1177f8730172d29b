"""A study's files.

study.yaml       the resolved configuration, the launcher and the names of all cells; written whole
cells/NAME/      run folder of a cell
cells/NAME.log   output of its processes, attempt after attempt
jobs/            files of the launcher's jobs, while cells run and where some have failed
scores/          scores without training by weights, data and fold, for all cells; may be deleted at any time
results.jsonl    the scores of all finished cells
report.md        the main table
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from metasearch.config import yaml
from metasearch.config.base import FrozenConfig
from metasearch.config.study import LauncherConfig, StudyConfig
from metasearch.errors import RunFolderError
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.io import atomic_write, held, read_bytes, taken
from metasearch.runs.folder import RunFolder


class StudyMetadata(FrozenConfig):
    """`study.yaml`.

    Attributes:
        versions: of metasearch and its libraries, with which the study was begun.
        weights: fingerprint of the encoder that all arms start from; empty if its weights are drawn from each seed.
        place: where its cells ran last.
        cells: names of all cells.
    """

    data_fingerprint: str
    versions: dict[str, str]
    weights: Mapping[str, str] = {}
    place: LauncherConfig = LauncherConfig()
    cells: list[str]
    config: StudyConfig


class StudyFolder:
    """Read and write a study's files."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.report = self.path / "report.md"
        self.jobs = self.path / "jobs"
        self.queue = self.jobs / "cells.json"
        self.stop = self.jobs / "stop"
        self._file = self.path / STUDY_FILE

    @property
    def begun(self) -> bool:
        """Whether the folder has a study."""
        return self._file.is_file()

    @property
    def reached(self) -> bool:
        """Whether any job can be resumed, or may be in a cluster's queue."""
        # `begun` looks below a folder, and so at all cells at once.
        return RunFolder(self.path / "cells").begun or bool(self.queued())

    def queued(self) -> dict[str, str]:
        """Return the cells that a runner has submitted to a cluster and has not seen to end, with their job numbers."""
        try:
            return {str(name): str(number) for name, number in json.loads(read_bytes(self.queue)).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise RunFolderError(
                f"{self.queue} cannot be read: {error}. Delete it when the queue has no job of it"
            ) from None

    def stored(self) -> StudyMetadata:
        """Return the stored configuration; `RunFolderError` if it is missing."""
        if not self.begun:
            what = f"is no study: it has no {STUDY_FILE}" if self.path.exists() else "does not exist"
            raise RunFolderError(f"{self.path} {what}")
        return yaml.read_stored(self._file, StudyMetadata)

    def store(self, stored: StudyMetadata) -> None:
        """Write `study.yaml`, whole or not at all; `RunFolderError` when there is no room for it."""
        atomic_write(self._file, yaml.dump(stored.model_dump(mode="json")))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the folder and lock it against other runners."""
        if not self.begun and taken(self.path, STUDY_FILE):
            raise RunFolderError(f"{self.path} exists already and is no study; choose another folder with -o")
        with held(self.path, f"another crossval is at work in {self.path}; wait for it to end"):
            yield

    def at(self, name: str) -> Path:
        """Return a run's folder."""
        return self.path / "cells" / name

    def log(self, name: str) -> Path:
        """Return a job's log, beside its folder, which may be deleted and made again."""
        return self.path / "cells" / f"{name}.log"

    def done(self, name: str) -> bool:
        """Whether the run of a cell is finished."""
        return RunFolder(self.at(name)).finished

    def tidy(self, name: str, keep_models: bool) -> None:
        """Delete a finished cell's checkpoints, and its model unless models are kept."""
        # A process that was killed right after its report has left its checkpoint.
        RunFolder(self.at(name)).remove_checkpoint()
        if not keep_models:
            shutil.rmtree(self.at(name) / "model", ignore_errors=True)
