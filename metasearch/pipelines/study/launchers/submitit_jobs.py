"""Cells as jobs of submitit: processes of this machine, or jobs of Slurm (https://github.com/facebookincubator/submitit).

Before a time limit, Slurm signals a job; the cell saves a checkpoint, and submitit puts the job back into the queue.
"""

import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import submitit
from submitit.helpers import DelayedSubmission, clean_env

from metasearch.config.study import SBATCH, LauncherConfig
from metasearch.errors import ConfigError
from metasearch.io import atomic_write
from metasearch.pipelines.study.cell import STOPPED, THREADS, CellJob
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import JobEnd, Launcher
from metasearch.pipelines.study.plan import Cell

_FRUITLESS = 3
"""Time limits in a row without progress after which a cell has failed."""
_UNLIMITED = 10**6
"""Minutes of a local job, and time limits of a job: both have to be numbers."""
_ARRAY = 1000
"""Tasks of an array at most: Slurm's own limit (`MaxArraySize`) is 1001 by default."""
_POLL_SECONDS = 30.0
"""Between two calls of `sacct`, and before a refused submission is tried again."""
_QUEUED = ("PENDING", "RUNNING", "REQUEUED", "COMPLETING", "SUSPENDED")

log = logging.getLogger(__name__)


@dataclass
class RequeuedCell(CellJob):
    """A cell that submitit puts back into the queue at a time limit.

    Attributes:
        written: bytes of its logs at the last time limit.
        fruitless: time limits in a row without progress.
    """

    written: int = 0
    fruitless: int = 0

    def checkpoint(self) -> DelayedSubmission | None:
        """Return what the next job is to run, or None where the cell makes no progress."""
        written = sum(path.stat().st_size for path in self.run.glob("*.jsonl"))
        fruitless = 0 if written > self.written else self.fruitless + 1
        again = replace(self, written=written, fruitless=fruitless)
        return DelayedSubmission(again) if fruitless < _FRUITLESS else None


class _Submitit(Launcher):
    """What both executors of submitit share."""

    job = RequeuedCell
    executor: submitit.Executor

    def submit(self, cells: Sequence[Cell]) -> Collection[str]:
        """Submit cells, in Slurm as an array."""
        jobs = self.executor.submit_array([self.make_job(cell) for cell in cells])
        self.active |= {cell.name: job for cell, job in zip(cells, jobs, strict=True)}
        return [cell.name for cell in cells]

    def end_of(self, job: submitit.Job[int]) -> JobEnd | None:
        """Return the end of a job; its result may come late on a shared file system."""
        if not job.done():
            return None
        if job.exception() is None:
            return JobEnd(job.result())
        return JobEnd(None, f"its job has ended in state {job.state} without a result ({job.paths.stdout})")


class Local(_Submitit):
    """Each cell is a process of this machine; it stops, with a checkpoint, when the runner ends."""

    tick = 0.25
    options = ("--until-eof",)

    def __init__(self, study: StudyFolder, stored: StudyMetadata) -> None:
        super().__init__(study, stored)
        # submitit hides all GPUs from local jobs that ask for none.
        gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
        shown = ["-u", "CUDA_VISIBLE_DEVICES"] if gpus is None else [f"CUDA_VISIBLE_DEVICES={gpus}"]
        self.executor = submitit.LocalExecutor(study.jobs, python=_python(self.threads, *shown))
        self.executor.update_parameters(timeout_min=_UNLIMITED, stderr_to_stdout=True)
        # Nothing is ever written to the pipe: it is closed when this process ends, however that happens.
        self._input, self._alive = os.pipe()

    def submit(self, cells: Sequence[Cell]) -> Collection[str]:
        """Begin cells, each at once."""
        with _detached(self._input):
            return super().submit(cells)

    def stop(self, again: bool) -> None:
        """Send SIGTERM to all jobs."""
        for job in self.active.values():
            if not job.done():
                with suppress(ProcessLookupError):
                    os.kill(int(job.job_id), signal.SIGTERM)


class Slurm(_Submitit):
    """Each cell is a job of Slurm, which continues without a runner; the next runner finds it by its number."""

    tick = 5.0

    def __init__(self, study: StudyFolder, stored: StudyMetadata) -> None:
        super().__init__(study, stored)
        try:
            self.executor = submitit.SlurmExecutor(study.jobs, max_num_timeout=_UNLIMITED, python=_python(self.threads))
        except RuntimeError:
            raise ConfigError(
                "srun is not found: --launcher slurm needs Slurm's commands, as a login node has them"
            ) from None
        self.executor.update_parameters(**slurm_parameters(self.place, self.threads))
        self.active = {name: submitit.SlurmJob(study.jobs, number) for name, number in study.queued().items()}
        self._polled = self._refused = -_POLL_SECONDS
        self._stopping = False

    def submit(self, cells: Sequence[Cell]) -> Collection[str]:
        """Submit cells as an array; none where Slurm refuses more jobs for now."""
        if time.monotonic() - self._refused < _POLL_SECONDS:
            return ()
        try:
            with _detached(0), clean_env():
                taken = super().submit(cells[:_ARRAY])
                self._note()
        except (submitit.core.utils.FailedJobError, OSError) as error:
            message = f"sbatch: {'; '.join(str(error).strip().splitlines())}"
            # Such as a limit of jobs: where some are there, they will end.
            if not self.active:
                raise ConfigError(message) from None
            log.warning("%s; trying again later", message)
            self._refused = time.monotonic()
            return ()
        return taken

    def collect(self) -> Mapping[str, JobEnd]:
        """Return the cells that have ended; `sacct` is asked by one call for all."""
        wait = self.tick if self._stopping else _POLL_SECONDS
        if self.active and time.monotonic() - self._polled >= wait:
            self._polled = time.monotonic()
            submitit.SlurmJob.watcher.update()
        if found := super().collect():
            self._note()
        return found

    def end_of(self, job: submitit.Job[int]) -> JobEnd | None:
        """Return the end of a job that is not requeued."""
        end = super().end_of(job)
        # Slurm requeues a job that another job has preempted; nobody asked the cell to stop.
        if end and end.code in STOPPED and not self._stopping and job.watcher.get_state(job.job_id) in _QUEUED:
            return None
        return end

    def stop(self, again: bool) -> None:
        """Cancel jobs that wait, and send SIGTERM to those that run; `again` cancels them, too."""
        self._stopping, self.tick = True, 1.0
        if numbers := [job.job_id for job in self.active.values()]:
            for options in ([],) if again else (["--state=PENDING"], ["--signal=TERM"]):
                ran = subprocess.run(["scancel", *options, *numbers], capture_output=True, text=True, check=False)
                if ran.returncode:
                    log.warning("scancel: %s", ran.stderr.strip())

    def _note(self) -> None:
        """Write the numbers of the jobs down, for the next runner."""
        numbers = {name: job.job_id for name, job in self.active.items()}
        atomic_write(self.study.queue, json.dumps(numbers, indent=1) + "\n")


def slurm_parameters(place: LauncherConfig, threads: int) -> dict[str, object]:
    """Return the parameters of submitit's executor for Slurm."""
    asked = dict(place.settings)
    cpus = int(asked.get("cpus", threads))
    more: dict[str, object] = {name: asked[name] for name in SBATCH if name in asked}
    more |= {"mem": asked["memory"]} if "memory" in asked else {}
    found: dict[str, object] = {
        "job_name": "metasearch",
        "time": 240,
        "signal_delay_s": int(asked.get("before", 120)),
        "cpus_per_task": cpus,
        # Since Slurm 22.05, srun does not read the number of cores of sbatch.
        "srun_args": [f"--cpus-per-task={cpus}"],
        "stderr_to_stdout": True,
        "array_parallelism": _ARRAY,
        "wckey": None,
        "additional_parameters": {"requeue": True, **more},
    }
    return found | ({"gpus_per_node": int(asked["gpus"])} if "gpus" in asked else {})


def _python(threads: int, *changes: str) -> str:
    """Return the command of a job's Python, with a number of threads and other changes of its environment."""
    return shlex.join(["env", *changes, *(f"{name}={threads}" for name in THREADS), sys.executable])


@contextmanager
def _detached(standard_input: int) -> Iterator[None]:
    """Keep Ctrl-C on the terminal from processes that begin meanwhile, and give them another standard input."""
    before, mask = os.dup(0), signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.dup2(standard_input, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


LAUNCHERS = {"local": Local, "slurm": Slurm}
