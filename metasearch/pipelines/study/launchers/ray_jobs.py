"""Cells as tasks on the nodes of a running Ray cluster; this process is its driver (https://docs.ray.io)."""

import logging
import os
import re
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.experimental import internal_kv

from metasearch.errors import ConfigError, ProcessLost, first_line
from metasearch.pipelines.study.cell import THREADS, CellJob
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import JobEnd, Launcher
from metasearch.runs import signals

_PASSED = ("METASEARCH_", "HF_", "PYTHONPATH")
"""Prefixes of the variables that cells get from this process; the others come from their node."""

_ASK_SECONDS = 5.0
_HEAD_SECONDS = 40.0
"""Without an answer of the head, after which the study ends; Ray itself would end this process after 60."""
_OUT_OF_MEMORY_RETRIES = "3"
"""Ray's own default is to try for ever."""

log = logging.getLogger(__name__)


class Ray(Launcher):
    """Runs cells as tasks. Ray runs a task again whose node is lost, and the cell resumes from its checkpoint."""

    def __init__(self, study: StudyFolder, stored: StudyMetadata) -> None:
        super().__init__(study, stored)
        asked = self.place.settings
        address = asked.get("address", "auto")
        passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
        env = {"env_vars": {**passed, **dict.fromkeys(THREADS, str(self.threads))}}
        os.environ.setdefault("RAY_task_oom_retries", _OUT_OF_MEMORY_RETRIES)
        ray._private.worker.print_to_stdstream = _say
        try:
            ray.init(address, runtime_env=env, log_to_driver=False, logging_level="error", ignore_reinit_error=True)
        except (RayError, OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"no Ray cluster at address '{address}': {first_line(error)}; see ray status") from None
        signals.listen()  # Ray takes SIGTERM for itself
        self._head = ray.get_runtime_context().gcs_address
        self._asked = self._answered = time.monotonic()
        # A worker runs one task: the next one finds no trace of it.
        self._remote = ray.remote(
            num_cpus=int(asked.get("cpus", self.threads)), num_gpus=int(asked.get("gpus", 0)),
            memory=self.place.memory, max_calls=1, max_retries=-1,
        )(CellJob.__call__)  # fmt: skip

    def submit(self, names: Sequence[str]) -> Collection[str]:
        """Submit jobs; each begins when a node has room for it."""
        self.active |= {name: self._remote.remote(self.make_job(name)) for name in names}
        return names

    def collect(self) -> Mapping[str, JobEnd]:
        """Return the cells that have ended; `ProcessLost` if the cluster is lost."""
        if time.monotonic() - self._asked >= _ASK_SECONDS:
            self._asked = time.monotonic()
            fault = self._head_fault()
            self._answered = self._answered if fault else self._asked
            if self._asked - self._answered > _HEAD_SECONDS:
                self.active = {}
                raise ProcessLost(
                    f"the head of the Ray cluster at {self._head} is lost ({fault}); its runs end, with the "
                    "checkpoints that they have"
                )
        return super().collect()

    def _head_fault(self) -> str:
        """Return why the head of the cluster is of no use, or empty."""
        host, _, port = self._head.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=2).close()  # without this, Ray waits for it
            # A head that has restarted without persistence refuses it; `ray.nodes()` would abort this process.
            internal_kv._internal_kv_exists(b"metasearch")
        except (OSError, RayError, RuntimeError) as error:
            return _sentence(first_line(error))
        return ""

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


def _say(data: Mapping[str, Any], ignore_prefix: bool = False) -> None:
    """Log the first sentence of a message by Ray, such as a lost node; Ray itself writes all to stdout."""
    for message in data["lines"]:
        log.warning("Ray: %s", _sentence(message.strip()))


def _sentence(message: str) -> str:
    """Return the first sentence of a message, without the advice that follows in Ray's."""
    return re.split(r"\.[.\s]", message, maxsplit=1)[0]
