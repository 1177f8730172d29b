"""Cells as jobs of Slurm: arrays of which each task is a cell.

Nothing of a study lives in the runner alone. What was handed in is written down before, by a name that also is the
job's; each cell writes its exit code into the study's folder. So a runner that was killed finds its jobs again, also
those that ended in between, whatever Slurm still knows of them:

    submitted/TOKEN.json        the cells of an array that are not known to have ended, and the number of its job
    submitted/TOKEN.sh          its script
    submitted/TOKEN_0.code      exit code of its first cell, until it is read
    submitted/TOKEN_0.out       what Slurm said of it; deleted where that is nothing
"""

import json
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from metasearch.config.launchers import LauncherConfig
from metasearch.errors import ConfigError, RunFolderError
from metasearch.io import atomic_write, read_bytes
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers import _slurm_queue as queue
from metasearch.pipelines.study.launchers._slurm_script import STOPPED, sbatch_options, script_of
from metasearch.pipelines.study.launchers.base import QUEUED, RUNNING, JobStatus
from metasearch.pipelines.study.process import begin_attempt

POLL_SECONDS = 30
_ARRAY = 1000
"""Tasks of an array at most: Slurm's own limit (`MaxArraySize`) is 1001 by default."""
_GONE = 3
"""Looks at which a task must be missing: file systems and Slurm itself may lag."""
_WAITS = {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", "RESV_DEL_HOLD"}
_RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
_OUTSIDE = {"TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"}
"""States of jobs that ended through no fault of their own."""
_SIGNALS = {128 + number: -number for number in (4, 6, 7, 8, 9, 11)}
"""A shell's exit codes of processes that a signal killed, and those of `subprocess`."""


@dataclass
class _Array:
    """An array that was handed in.

    Attributes:
        token: its name.
        cells: by number of their task; those that have not ended.
        job: its number in Slurm; empty where the runner died before it knew.
        states: of its tasks, by number, when Slurm was last asked.
        seen: how they were when that could last be told.
        missing: at how many looks a task had ended, for all that Slurm knows, and had left no exit code.
    """

    token: str
    cells: dict[int, str]
    job: str = ""
    states: dict[int, str] = field(default_factory=dict)
    seen: dict[int, JobStatus] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)


class Slurm:
    """The arrays of a study. A cell is queued or at work whether or not a runner watches it."""

    tick = 5.0

    def __init__(self, place: LauncherConfig, study: StudyFolder, stored: StudyMetadata) -> None:
        self._place = place
        self._study = study
        self._config = stored.config
        self._poll = float(place.settings.get("poll", POLL_SECONDS))
        self._looks = _GONE
        self._asked = self._refused = -self._poll
        self.tick = min(self.tick, self._poll)
        self._arrays = _arrays(study)
        for array in self._arrays:
            # What is done needs nobody to wait for it, whatever became of its exit code.
            self._note(array, [number for number, name in array.cells.items() if study.done(name)])

    def start(self, names: Sequence[str]) -> Collection[str]:
        """Hand in cells as an array; none where Slurm does not take more for now."""
        if time.monotonic() - self._refused < self._poll:
            return ()
        names = names[:_ARRAY]
        array = _Array(f"metasearch-{secrets.token_hex(6)}", dict(enumerate(names)))
        threads = self._config.threads or 1
        options = sbatch_options(self._place, self._study.submitted, array.token, len(names), threads)
        script = self._study.submitted / f"{array.token}.sh"
        submitted = ["sbatch", *options, script.name]
        trust = self._config.encoder.trust_remote_code
        atomic_write(script, script_of(self._study, array.token, names, submitted, threads, trust))
        # Before it is handed in: who dies or is stopped between the two finds the job by its name.
        self._write(array)
        self._arrays.append(array)
        try:
            array.job = queue.submit(script, options)
        except ConfigError as error:
            self._forget(array, script)
            # Such as a limit of jobs: where some are there, they will end.
            if not (self._arrays and isinstance(error, queue.Refused)):
                raise
            queue.log.warning(f"{error}; tried again later")
            self._refused = time.monotonic()
            return ()
        self._write(array)
        for name in names:
            begin_attempt(self._study, name)
        return names

    def look(self) -> Mapping[str, JobStatus]:
        """Return how the cells are; Slurm itself is asked every `poll` seconds, by one call for all."""
        asked = time.monotonic() - self._asked >= self._poll and self._ask()
        there = {path.name for path in self._study.submitted.iterdir()} if self._arrays else set()
        seen = {}
        for array in self._arrays:
            ended = []
            for number, name in array.cells.items():
                code = self._code(array, number) if f"{array.token}_{number}.code" in there else None
                seen[name] = self._seen(name, code, array, number, asked)
                if seen[name].state == "ended":
                    ended.append(number)
            self._note(array, ended)
        self._arrays = [array for array in self._arrays if array.cells]
        return seen

    def stop(self, kill: bool) -> None:
        """Cancel what waits, and ask what runs to save a checkpoint, or kill it."""
        # From now on an end is soon and is waited for.
        self._poll, self._looks, self.tick = min(self._poll, 2.0), 1, min(self.tick, 0.5)
        self._ask()
        queue.cancel({array.job for array in self._arrays if array.job}, kill)
        self._asked = -self._poll

    def _ask(self) -> bool:
        """Ask Slurm for the states of all tasks; return whether it has answered."""
        if not self._arrays:
            return False
        self._asked = time.monotonic()
        found = queue.look([array.token for array in self._arrays])
        if found is None:
            return False
        for array in self._arrays:
            array.states = {}
            for number in array.cells:
                if known := found.get((array.token, number)):
                    array.job, array.states[number] = known
        return True

    def _seen(self, name: str, code: str | None, array: _Array, number: int, asked: bool) -> JobStatus:
        state = array.states.get(number, "")
        if code == "0" and self._study.done(name):
            return JobStatus("ended", 0)
        if state in _WAITS or state in _RUNS:
            array.seen[number], array.missing[number] = QUEUED if state in _WAITS else RUNNING, 0
        # Other codes count when the job has ended, too: Slurm may put it back into its queue.
        elif asked:
            array.missing[number] = array.missing.get(number, 0) + 1
            if code is not None or array.missing[number] >= self._looks:
                return ended(code, state, self._file(array, number, "out"))
        return array.seen.get(number, QUEUED)

    def _code(self, array: _Array, number: int) -> str | None:
        try:
            return read_bytes(self._file(array, number, "code")).decode().strip()
        except OSError:  # a file system whose list of names is ahead of its files
            return None

    def _file(self, array: _Array, number: int, kind: str) -> Path:
        return self._study.submitted / f"{array.token}_{number}.{kind}"

    def _note(self, array: _Array, ended: Sequence[int]) -> None:
        """Write down that tasks have ended, and clear up after them."""
        if not ended:
            return
        for number in ended:
            del array.cells[number]
        self._write(array)
        for number in ended:
            self._file(array, number, "code").unlink(missing_ok=True)
            said = self._file(array, number, "out")
            if said.is_file() and not said.stat().st_size:
                said.unlink()

    def _write(self, array: _Array) -> None:
        path = self._study.submitted / f"{array.token}.json"
        if array.cells:
            atomic_write(path, json.dumps({"job": array.job, "cells": array.cells}) + "\n")
        else:
            path.unlink(missing_ok=True)

    def _forget(self, array: _Array, script: Path) -> None:
        """Delete what was written of an array that Slurm did not take."""
        self._arrays.remove(array)
        array.cells = {}
        self._write(array)
        script.unlink()


def ended(code: str | None, state: str, said: Path) -> JobStatus:
    """Return the end of a cell.

    Args:
        code: what it wrote, such as `143 stopped`; None where that is nothing.
        state: of its job; empty where Slurm does not know it any more.
        said: file with what Slurm said of it.
    """
    outside = state in _OUTSIDE
    if code is None:
        why = f"Slurm says {state}" if state else "its job is gone and left no exit code"
        more = f" ({said})" if said.is_file() and said.stat().st_size else ""
        return JobStatus("ended", None, why + more, again=outside or not state)
    number, _, asked = code.partition(" ")
    # An exit code of its own says more than that the job has failed.
    known = "" if state in ("", "COMPLETED", "FAILED") else f"Slurm says {state}"
    why = known or ("before its time limit" if asked == STOPPED else "")
    return JobStatus("ended", _SIGNALS.get(int(number), int(number)), why, again=outside or asked == STOPPED)


def _arrays(study: StudyFolder) -> list[_Array]:
    """Return the arrays as they were written down; `RunFolderError` where that cannot be read."""
    found = []
    for path in sorted(study.submitted.glob("*.json")):
        try:
            known = json.loads(read_bytes(path))
            cells = {int(number): str(name) for number, name in known["cells"].items()}
            found.append(_Array(path.stem, cells, str(known["job"])))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(
                f"{path} cannot be read: {error}. Delete it once no job of this name is in the queue"
            ) from None
    return found


LAUNCHER = Slurm
