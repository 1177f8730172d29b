"""Cells as tasks on the nodes of a running Ray cluster; this process is its driver (https://docs.ray.io)."""

import os
from collections.abc import Collection, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from metasearch.errors import ConfigError, first_line
from metasearch.pipelines.study.cell import THREADS, CellJob
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import JobEnd, Launcher
from metasearch.pipelines.study.plan import Cell
from metasearch.runs import signals

_PASSED = ("METASEARCH_", "HF_", "PYTHONPATH")
"""Prefixes of the variables that cells get from this process; the others come from their node."""


class Ray(Launcher):
    """Runs cells as tasks. Ray runs a task again whose node is lost, and the cell resumes from its checkpoint."""

    def __init__(self, study: StudyFolder, stored: StudyMetadata) -> None:
        super().__init__(study, stored)
        asked = self.place.settings
        address = asked.get("address", "auto")
        passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
        env = {"env_vars": {**passed, **dict.fromkeys(THREADS, str(self.threads))}}
        try:
            ray.init(address, runtime_env=env, log_to_driver=False, logging_level="error", ignore_reinit_error=True)
        except (RayError, OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"no Ray cluster at address '{address}': {first_line(error)}; see ray status") from None
        signals.listen()  # Ray takes SIGTERM for itself
        # A worker runs one task: the next one finds no trace of it.
        self._remote = ray.remote(
            num_cpus=int(asked.get("cpus", self.threads)), num_gpus=int(asked.get("gpus", 0)),
            memory=self.place.memory, max_calls=1, max_retries=-1,
        )(CellJob.__call__)  # fmt: skip

    def submit(self, cells: Sequence[Cell]) -> Collection[str]:
        """Submit cells; each begins when a node has room for it."""
        self.active |= {cell.name: self._remote.remote(self.make_job(cell)) for cell in cells}
        return [cell.name for cell in cells]

    def end_of(self, job: Any) -> JobEnd | None:
        """Return the end of a task."""
        if not ray.wait([job], timeout=0)[0]:
            return None
        try:
            return JobEnd(ray.get(job))
        except RayError as error:
            return JobEnd(None, f"its task of Ray failed: {first_line(getattr(error, 'cause', None) or error)}")

    def stop(self, again: bool) -> None:
        """Interrupt all tasks; those that wait for a node end at once."""
        for task in self.active.values():
            ray.cancel(task, force=again)


LAUNCHERS = {"ray": Ray}
