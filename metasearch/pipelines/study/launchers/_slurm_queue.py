"""What is asked of Slurm by its commands: hand in, look, cancel. Nothing but text goes in and out."""

import logging
import os
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from metasearch.errors import ConfigError
from metasearch.pipelines.study.launchers._slurm_script import STOP

Task = tuple[str, int]
"""A task of an array: the array's name and the task's number."""

_FIELDS = "%j|%F|%K|%T"
"""Of `squeue`: name of the job, number of the array, number of the task, state."""

log = logging.getLogger(__name__)


class Refused(ConfigError):
    """Slurm does not take a job, for now or ever; the message is Slurm's."""


def submit(script: Path, options: Sequence[str]) -> str:
    """Hand in a script from its folder; return the number of the job.

    Raises:
        Refused: Slurm does not take it.
        ConfigError: there is no Slurm here.
    """
    ran = _run(["sbatch", *options, script.name], script.parent)
    if ran.returncode:
        said = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in ran.stderr.splitlines() if line]
        raise Refused(f"sbatch: {'; '.join(said) or f'exit code {ran.returncode}'}")
    # NUMBER, or NUMBER;CLUSTER
    return ran.stdout.strip().splitlines()[-1].partition(";")[0]


def look(tokens: Iterable[str]) -> dict[Task, tuple[str, str]] | None:
    """Return the array's number and the state of each task of some arrays that Slurm knows; None where it is silent.

    One call for all; those that ended in the last minutes are among them (`MinJobAge`).
    """
    asked = ["--noheader", "--array", "--states=all", f"--name={','.join(tokens)}", f"--format={_FIELDS}"]
    ran = _run(["squeue", f"--user={os.getuid()}", *asked])
    if ran.returncode:
        log.warning(f"squeue, which will be asked again: {ran.stderr.strip() or f'exit code {ran.returncode}'}")
        return None
    return parsed(ran.stdout)


def parsed(lines: str) -> dict[Task, tuple[str, str]]:
    """Return what `squeue` has written by task; the rest of an array that was cancelled as a whole has none."""
    rows = (line.strip().split("|") for line in lines.splitlines() if line.strip())
    return {(token, int(number)): (job, state) for token, job, number, state in rows if number.isdecimal()}


def cancel(jobs: Collection[str], kill: bool) -> None:
    """Ask the cells of some jobs to save what they have reached and end, or kill them; what waits is cancelled."""
    if not jobs:
        return
    for options in (["--state=PENDING"], ["--full", "--signal=KILL"] if kill else ["--batch", f"--signal={STOP}"]):
        ran = _run(["scancel", *options, *sorted(jobs)])
        if ran.returncode:
            log.warning(f"scancel: {ran.stderr.strip()}")


def _run(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    try:
        # A session of its own: Ctrl-C must not cut off a job that is just being handed in.
        return subprocess.run(
            command, cwd=folder, env=_environment(os.environ), capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError:
        raise ConfigError(
            f"{command[0]} is not found: --launcher slurm needs Slurm's commands, as a login node has them"
        ) from None


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what Slurm has set for the job in which this process itself may run."""
    return {name: value for name, value in variables.items() if not name.startswith("SLURM_") or name == "SLURM_CONF"}
