"""Processes of a study, seen from the runner."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

from metasearch.errors import RunFolderError
from metasearch.jobs.crossval.folder import StudyFolder

Event = Mapping[str, Any]
Inbox = SimpleQueue[tuple[str, Event]]
"""Name of a cell and what happened; `{"ended": exit code}` comes last."""

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


def environment(threads: int) -> dict[str, str]:
    """Return the environment of a process with a number of threads."""
    shared = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PYTHONUNBUFFERED": "1"}
    return {**shared, **dict.fromkeys(_THREADS, str(threads))}


class Worker:
    """The process of a cell, begun when this is made.

    Args:
        study: that has the cell.
        name: of the cell.
        threads: of the process.
        inbox: hears of everything that the process tells, and of its end.

    Raises:
        RunFolderError: the log cannot be written.
    """

    def __init__(self, study: StudyFolder, name: str, threads: int, inbox: Inbox) -> None:
        self.name = name
        self._inbox = inbox
        log = study.log(name)
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                file.write(f"--- attempt {attempts(study, name) + 1}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
                file.flush()
                reading, writing = os.pipe()
                # A session of its own: Ctrl-C on the terminal reaches the runner only, which tells its cells itself.
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "metasearch.jobs.crossval.cell", str(study.path), name, str(writing)],
                    stdin=subprocess.PIPE, stdout=file, stderr=file, pass_fds=(writing,),
                    env=environment(threads), cwd=study.path, start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise RunFolderError(f"{log}: cell {name} cannot be begun: {error.strerror}") from None
        os.close(writing)
        threading.Thread(target=self._listen, args=(reading,), daemon=True).start()

    @property
    def code(self) -> int | None:
        """Exit code of the process; None as long as it lives."""
        return self.process.poll()

    def stop(self) -> None:
        """Ask the process to save what it has reached and end."""
        self.process.terminate()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()

    def _listen(self, pipe: int) -> None:
        with open(pipe, "rb") as lines:
            for line in lines:
                try:
                    self._inbox.put((self.name, json.loads(line)))
                except ValueError:
                    continue  # the process was killed while it wrote
        self._inbox.put((self.name, {"ended": self.process.wait()}))


def attempts(study: StudyFolder, name: str) -> int:
    """Return how often a cell was begun."""
    log = study.log(name)
    return sum(line.startswith(b"--- attempt ") for line in log.read_bytes().splitlines()) if log.is_file() else 0


def last_line(study: StudyFolder, name: str) -> str:
    """Return the last line that the latest attempt at a cell wrote; empty when it wrote none."""
    log = study.log(name)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    written = [line for line in lines if line.strip()]
    return "" if not written or written[-1].startswith("--- attempt ") else written[-1].strip()


def how_ended(code: int) -> str:
    """Return an exit code of `subprocess` in words: `exit code 4`, or `killed by SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"killed by {names.get(-code, f'signal {-code}')}"
