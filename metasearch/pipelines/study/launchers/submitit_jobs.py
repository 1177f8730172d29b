"""Cells as jobs of submitit on this machine, and what Slurm's share (https://github.com/facebookincubator/submitit)."""

import os
import shlex
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import submitit
from submitit.helpers import DelayedSubmission

from metasearch.config.study import LauncherConfig
from metasearch.pipelines.study.cell import STOPPED, THREADS, CellJob
from metasearch.pipelines.study.launchers import JobEnd, Launcher
from metasearch.pipelines.study.launchers.folder import JobFolder
from metasearch.runs import signals

_FRUITLESS = 3
"""Time limits in a row without progress after which a cell has failed."""
UNLIMITED = 10**6
"""Minutes of a local job, and time limits of a job: both have to be numbers."""
_RULE = "\n" + "-" * 22


@dataclass
class RequeuedCell(CellJob):
    """A cell that submitit puts back into the queue at a time limit.

    Attributes:
        written: bytes of its logs at the last time limit.
        fruitless: time limits in a row without progress.
        stop: a file that exists once the study has been stopped.
    """

    written: int = 0
    fruitless: int = 0
    stop: Path | None = None

    def __call__(self) -> int:
        """Run the cell, unless the study has been stopped."""
        # A signal is heard from here on; for one that came before, the file is there.
        signals.listen()
        return STOPPED[1] if self.stop and self.stop.exists() else super().__call__()

    def checkpoint(self) -> DelayedSubmission | None:
        """Return what the next job is to run, or None where the cell makes no progress."""
        written = sum(path.stat().st_size for path in self.run.glob("*.jsonl"))
        fruitless = 0 if written > self.written else self.fruitless + 1
        again = replace(self, written=written, fruitless=fruitless)
        return DelayedSubmission(again) if fruitless < _FRUITLESS else None


class SubmititLauncher(Launcher):
    """A launcher whose jobs are submitit's."""

    job = RequeuedCell
    executor: submitit.Executor

    def submit(self, names: Sequence[str]) -> Collection[str]:
        """Submit jobs."""
        for name in names:
            self.active[name] = self.executor.submit(self.make_job(name))
        return names

    def end_of(self, job: submitit.Job[int]) -> JobEnd | None:
        """Return the end of a job."""
        return result_of(job) if job.done() else None


class Local(SubmititLauncher):
    """Each cell is a process of this machine; it stops, with a checkpoint, when the runner ends."""

    tick = 0.25
    options = ("--until-eof",)

    def __init__(self, folder: JobFolder, place: LauncherConfig, threads: int, trust_remote_code: bool) -> None:
        super().__init__(folder, place, threads, trust_remote_code)
        # submitit hides all GPUs from local jobs that ask for none.
        gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
        shown = ["-u", "CUDA_VISIBLE_DEVICES"] if gpus is None else [f"CUDA_VISIBLE_DEVICES={gpus}"]
        self.executor = submitit.LocalExecutor(folder.jobs, python=python(self.threads, *shown))
        self.executor.update_parameters(timeout_min=UNLIMITED, stderr_to_stdout=True)
        # Nothing is ever written to the pipe: it is closed when this process ends, however that happens.
        self._input, self._alive = os.pipe()

    def submit(self, names: Sequence[str]) -> Collection[str]:
        """Begin jobs, each at once."""
        with detached(self._input):
            return super().submit(names)

    def stop(self, again: bool) -> None:
        """Send SIGTERM to all jobs."""
        for job in self.active.values():
            if not job.done():
                with suppress(ProcessLookupError):
                    os.kill(int(job.job_id), signal.SIGTERM)


def result_of(job: submitit.Job[int]) -> JobEnd:
    """Return the exit code of a cell, or why its job has none."""
    if (error := job.exception()) is None:
        return JobEnd(job.result())
    if not job.paths.result_pickle.exists():
        return JobEnd(None, f"its job ended without a result ({job.paths.stdout})")
    # submitit puts a traceback between two rules.
    return JobEnd(
        None, f"its job failed: {str(error).rpartition(_RULE)[0].rpartition(chr(10))[2]} ({job.paths.stdout})"
    )


def python(threads: int, *changes: str) -> str:
    """Return the command of a job's Python, with a number of threads and other changes of its environment."""
    return shlex.join(["env", *changes, *(f"{name}={threads}" for name in THREADS), sys.executable])


@contextmanager
def detached(standard_input: int) -> Iterator[None]:
    """Keep Ctrl-C on the terminal from processes that begin meanwhile, and give them another standard input."""
    before, mask = os.dup(0), signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.dup2(standard_input, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


LAUNCHERS = {"local": Local}
