"""A job: the command `metasearch resume RUN` in one process with one log.

A study thus gives the bits of `metasearch train`. This module imports little, since a job loads it first.
"""

import os
import runpy
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# OpenMP, MKL and OpenBLAS serve torch and numpy; Rayon runs the tokenizers, which are written in Rust.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
"""Environment variables that set the number of threads of a process."""
STOPPED = (130, 143)
"""Exit codes of a cell that was stopped and has saved a checkpoint."""
_ATTEMPT = "--- attempt, "
_ERROR = "metasearch: error: "


@dataclass
class CellJob:
    """A callable that resumes the run of a cell and returns its exit code; all output goes to `log`."""

    run: Path
    log: Path
    options: Sequence[str]
    _time_limit: bool = field(default=False, init=False)

    def __call__(self) -> int:
        """Run the cell to its end, or until SIGTERM, SIGINT or SIGUSR2 stops it with a checkpoint."""
        requeue: Any = signal.getsignal(signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, self._stop_before_time_limit)
        with _output_to(self.log):
            code = self._resume()
        if self._time_limit and code in STOPPED:
            requeue(signal.SIGUSR2, None)
        return code

    def _resume(self) -> int:
        sys.argv = ["metasearch", "resume", str(self.run), *self.options]
        try:
            runpy.run_module("metasearch", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            return int(end.code or 0)
        except KeyboardInterrupt:  # before the command has begun
            return STOPPED[1]
        return 0

    def _stop_before_time_limit(self, *_: object) -> None:
        self._time_limit = True
        os.kill(os.getpid(), signal.SIGTERM)


def begin_attempt(log: Path, error: str = "") -> None:
    """Begin another attempt in a job's log, with the error that ended it before its process started."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{_ATTEMPT}{time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.write(f"{_ERROR}{error}\n" if error else "")


def last_error(log: Path) -> str:
    """Return the error of the latest attempt at a cell, or its last line; empty where it wrote nothing."""
    # A killed process may have cut a character in two.
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    # The rest of the line behind the mark is the attempt's time.
    attempt = text.rpartition(_ATTEMPT)[2].partition("\n")[2].strip()
    # An error may have several lines: all that follows its mark is taken.
    return attempt.rpartition(_ERROR)[2] if _ERROR in attempt else attempt.rpartition("\n")[2]


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Send all output, including libraries', to a log while entered."""
    begin_attempt(log)
    sys.stdout.flush()  # what was printed before belongs to the launcher's own log
    before = os.dup(1), os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, kept in enumerate(before, start=1):
            os.dup2(kept, number)
            os.close(kept)
