"""Slurm's commands for jobs: `squeue`, which needs no accounting, and `scancel` (https://slurm.schedmd.com).

The controller keeps a job for some minutes after its end (`MinJobAge`). A job that `squeue` does not list has ended.
"""

import logging
import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

ENDED = frozenset((
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT",
))  # fmt: skip
"""States that a job does not leave; all others are of jobs that wait, run or are put back into the queue."""
PENDING = "PENDING"

log = logging.getLogger(__name__)


class QueuedJob(NamedTuple):
    """A line of `squeue`: a job's state, why it waits, and the path of its script."""

    state: str
    reason: str
    script: str


class SlurmCommands:
    """Calls Slurm's commands; a failure is said once, until a command succeeds."""

    def __init__(self) -> None:
        self._said = ""

    def jobs(self) -> dict[str, QueuedJob] | None:
        """Return this user's jobs by number, also some that have ended; None where Slurm does not answer."""
        said = self._run("squeue", "--noheader", "--states=all", f"--user={os.getuid()}", "--format=%i|%T|%r|%o")
        if said is None:
            return None
        # Lines without bars are headers, which `SLURM_CLUSTERS` brings.
        lines = (line.split("|", 3) for line in said.splitlines() if line.count("|") >= 3)
        return {number: QueuedJob(*rest) for number, *rest in lines}

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
