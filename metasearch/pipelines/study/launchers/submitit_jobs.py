"""Cells as jobs of submitit, on this machine or in Slurm (https://github.com/facebookincubator/submitit).

Before a time limit, Slurm signals a job; the cell saves a checkpoint, and submitit puts the job back into the queue.
Jobs are looked at by `squeue`, which needs no accounting, and ended by `scancel` (https://slurm.schedmd.com). The
controller keeps a job for some minutes after its end (`MinJobAge`). A job that `squeue` does not list has ended.
"""

import io
import json
import logging
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

import submitit
from submitit.helpers import DelayedSubmission, clean_env

from metasearch.config.study import LauncherConfig
from metasearch.errors import ConfigError
from metasearch.io import atomic_write
from metasearch.pipelines.study.cell import STOPPED, THREADS, CellJob
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import JobEnd, Launcher
from metasearch.runs import signals

_FRUITLESS = 3
"""Time limits in a row without progress after which a cell has failed."""
_UNLIMITED = 10**6
"""Minutes of a local job, and time limits of a job: both have to be numbers."""
_RULE = "\n" + "-" * 22
_ENDED = frozenset((
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT",
))  # fmt: skip
"""States that a job does not leave; all others are of jobs that wait, run or are put back into the queue."""
_PENDING = "PENDING"
_POLL_SECONDS = 30.0
"""Between two calls of `squeue`, and before a refused submission is tried again."""
_LATE_SECONDS = 15.0
"""How much later than a job's end its result may be seen."""
_SUBMIT_SECONDS = 20
"""For one call of `sbatch`; it takes nine to find that the controller does not answer."""
_GONE = "UNKNOWN"
"""The state of a job that the controller has forgotten."""
_COMMANDS = ("srun", "sbatch", "squeue", "scancel")
_CLUSTER = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT")
"""Variables that name the cluster, for all commands of Slurm."""
_TEMPORARY = "temporarily unable to accept job"
"""What `sbatch` says at the cluster's limit of jobs (`MaxJobCount`)."""

log = logging.getLogger(__name__)


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
        return _result_of(job) if job.done() else None


class Local(SubmititLauncher):
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

    def submit(self, names: Sequence[str]) -> Collection[str]:
        """Begin jobs, each at once."""
        with _detached(self._input):
            return super().submit(names)

    def stop(self, again: bool) -> None:
        """Send SIGTERM to all jobs."""
        for job in self.active.values():
            if not job.done():
                with suppress(ProcessLookupError):
                    os.kill(int(job.job_id), signal.SIGTERM)


def _result_of(job: submitit.Job[int]) -> JobEnd:
    """Return the exit code of a cell, or why its job has none."""
    if (error := job.exception()) is None:
        return JobEnd(job.result())
    if not job.paths.result_pickle.exists():
        return JobEnd(None, f"its job ended without a result ({job.paths.stdout})")
    # submitit puts a traceback between two rules.
    return JobEnd(
        None, f"its job failed: {str(error).rpartition(_RULE)[0].rpartition(chr(10))[2]} ({job.paths.stdout})"
    )


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


class _QueuedJob(NamedTuple):
    """A line of `squeue`: a job's state and the path of its script."""

    state: str
    script: str


class _SlurmCommands:
    """Calls Slurm's commands; a failure is said once, until a command succeeds."""

    def __init__(self) -> None:
        self._said = ""

    def jobs(self) -> dict[str, _QueuedJob] | None:
        """Return this user's jobs by number, also some that have ended; None where Slurm does not answer."""
        said = self._run("squeue", "--noheader", "--states=all", f"--user={os.getuid()}", "--format=%i|%T|%o")
        if said is None:
            return None
        # Lines without bars are headers, which `SLURM_CLUSTERS` brings.
        lines = (line.split("|", 2) for line in said.splitlines() if line.count("|") >= 2)
        return {number: _QueuedJob(*rest) for number, *rest in lines}

    def cancel(self, numbers: Sequence[str], *options: str) -> bool:
        """Cancel or signal jobs; return whether Slurm has taken it."""
        return self._run("scancel", *options, *numbers) is not None

    def say(self, message: str) -> None:
        """Log a failure, once."""
        if message != self._said:
            log.warning("%s; trying again", message)
        self._said = message

    def _run(self, command: str, *args: str) -> str | None:
        """Return what a command has written, None where it failed."""
        ran = subprocess.run([command, *args], capture_output=True, text=True, check=False)
        if ran.returncode:
            self.say("; ".join(ran.stderr.strip().splitlines()) or f"{command}: exit code {ran.returncode}")
            return None
        self._said = ""
        return ran.stdout


class Slurm(SubmititLauncher):
    """Each cell is a job of Slurm, which continues without a runner; the next runner finds it by its number."""

    tick = 5.0

    def __init__(self, study: StudyFolder, stored: StudyMetadata) -> None:
        super().__init__(study, stored)
        if lacking := [name for name in _COMMANDS if not shutil.which(name)]:
            raise ConfigError(
                f"{lacking[0]} is not found: --launcher slurm needs Slurm's commands, as a login node has them"
            )
        self.executor = _Slurm(study.jobs, max_num_timeout=_UNLIMITED, python=_python(self.threads))
        self.executor.update_parameters(**slurm_parameters(self.place, self.threads))
        self.active = {name: submitit.SlurmJob(study.jobs, number) for name, number in study.queued().items()}
        study.stop.unlink(missing_ok=True)
        self._commands = _SlurmCommands()
        self._states: dict[str, str] = {}  # by number, as of the last look at the queue
        self._ended: dict[str, float] = {}  # when that look first showed the end of a job
        self._told: set[str] = set()  # jobs that were told to end
        self._polled = self._refused = -_POLL_SECONDS
        self._stopping = self._again = False
        self._cancel_unknown()

    def make_job(self, name: str) -> CellJob:
        """Return a job that ends at once where all have been stopped."""
        return replace(cast(RequeuedCell, super().make_job(name)), stop=self.study.stop)

    def submit(self, names: Sequence[str]) -> Collection[str]:
        """Submit jobs, as many as Slurm accepts for now."""
        if time.monotonic() - self._refused < _POLL_SECONDS:
            return ()
        for count, name in enumerate(names):
            self.executor.update_parameters(job_name=f"{self.study.path.name}/{name}")
            try:
                # submitit prints what `sbatch` writes, beside raising it.
                with _detached(0), _clean_environment(), redirect_stderr(io.StringIO()):
                    self.active[name] = self.executor.submit(self.make_job(name))
                    self._note()
            except (submitit.core.utils.FailedJobError, OSError) as error:
                message = "; ".join(str(error).strip().splitlines())
                # Such as a limit of jobs: where some are there, they will end.
                if not self.active and _TEMPORARY not in message:
                    raise ConfigError(message) from None
                self._commands.say(message)
                self._refused = time.monotonic()
                self._cancel_unknown()
                return names[:count]
        return names

    def collect(self) -> Mapping[str, JobEnd]:
        """Return the jobs that have ended; `squeue` is asked by one call for all."""
        wait = self.tick if self._stopping else _POLL_SECONDS
        if self.active and time.monotonic() - self._polled >= wait:
            self._look()
        with suppress(OSError):  # NFS then asks its server for what is new in the folder
            self.study.jobs.chmod(self.study.jobs.stat().st_mode)
        if found := super().collect():
            self._note()
        return found

    def end_of(self, job: submitit.Job[int]) -> JobEnd | None:
        """Return the end of a job that is not requeued; its result may come late on a shared file system."""
        end = _result_of(job) if job.paths.result_pickle.exists() else None
        # Only Slurm knows why a cell was stopped that nobody here has stopped: a requeued job runs again.
        if end and (self._stopping or end.code not in STOPPED):
            return end
        late = 0.0 if self._stopping else _LATE_SECONDS
        if time.monotonic() - self._ended.get(job.job_id, math.inf) < late:
            return None
        state = self._states.get(job.job_id, _GONE)
        why = "; it reached its time limit: set a longer one with --launcher-set time=" * (state == "TIMEOUT")
        return JobEnd(None, f"its job {job.job_id} ended in state {state}" + ("" if end else " without a result") + why)

    def stop(self, again: bool) -> None:
        """Cancel jobs that wait, and send SIGTERM to those that run; `again` cancels them, too."""
        self._stopping, self._again, self.tick = True, again, 1.0
        self._told.clear()
        # Slurm signals the steps of a job, and one that begins at this moment may have none yet.
        with suppress(OSError):
            self.study.stop.touch()
        if not self._look() and again:
            log.warning("Slurm does not answer; its jobs continue, and the same command finds them")
            self.active = {}

    def _look(self) -> bool:
        """Look at the queue, and tell jobs to end where the study is being stopped; return whether Slurm answers."""
        jobs, self._polled = self._commands.jobs(), time.monotonic()
        if jobs is None:
            return False
        numbers = [job.job_id for job in self.active.values()]
        found = {number: jobs.get(number, _QueuedJob(_GONE, "")) for number in numbers}
        self._states = {number: job.state for number, job in found.items()}
        # A job that was put back into the queue has not ended.
        ended = [number for number, state in self._states.items() if state in (*_ENDED, _GONE)]
        self._ended = {number: self._ended.get(number, self._polled) for number in ended}
        if self._stopping:
            self._end_jobs()
        return True

    def _end_jobs(self) -> None:
        """Cancel jobs that wait, and once signal, or cancel, each one that runs."""
        waiting = [number for number, state in self._states.items() if state == _PENDING]
        left = {number for number, state in self._states.items() if number not in self._ended and state != _PENDING}
        if waiting:
            self._commands.cancel(waiting, "--state=PENDING")
        if (running := sorted(left - self._told)) and self._commands.cancel(
            running, *([] if self._again else ["--signal=TERM"])
        ):
            self._told |= set(running)

    def _cancel_unknown(self) -> None:
        """Cancel jobs of this study whose numbers were not noted: their runner was killed while it submitted them."""
        known = {job.job_id for job in self.active.values()}
        unknown = [
            number
            for number, job in (self._commands.jobs() or {}).items()
            if Path(job.script).parent == self.study.jobs and number not in known and job.state not in _ENDED
        ]
        if unknown:
            log.warning("cancelling %s of a runner that was killed while it submitted", ", ".join(unknown))
            self._commands.cancel(unknown)

    def _note(self) -> None:
        """Write the numbers of the jobs down, for the next runner."""
        numbers = {name: job.job_id for name, job in self.active.items()}
        atomic_write(self.study.queue, json.dumps(numbers, indent=1) + "\n")


class _Slurm(submitit.SlurmExecutor):
    """Gives up where `sbatch` waits: at a limit of jobs it tries again by itself for two minutes."""

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        return ["timeout", str(_SUBMIT_SECONDS), *super()._make_submission_command(submission_file_path)]


def slurm_parameters(place: LauncherConfig, threads: int) -> dict[str, object]:
    """Return the parameters of submitit's executor for Slurm."""
    asked = dict(place.settings)
    cpus = int(asked.get("cpus", threads))
    more: dict[str, object] = {**place.sbatch}
    more |= {"mem": asked["memory"]} if "memory" in asked else {}
    found: dict[str, object] = {
        "time": 240,
        "signal_delay_s": place.before,
        "cpus_per_task": cpus,
        # Since Slurm 22.05, srun does not read the number of cores of sbatch.
        "srun_args": [f"--cpus-per-task={cpus}"],
        "stderr_to_stdout": True,
        "wckey": None,
        "additional_parameters": {"requeue": True, **more},
    }
    return found | ({"gpus_per_node": int(asked["gpus"])} if "gpus" in asked else {})


@contextmanager
def _clean_environment() -> Iterator[None]:
    """Remove the variables of an enclosing job, and keep those that name the cluster."""
    kept = {name: os.environ[name] for name in _CLUSTER if name in os.environ}
    with clean_env():
        os.environ.update(kept)
        yield
