"""The process of a cell: `metasearch resume CELL` in a session and with a log of its own."""

import os
import signal
import subprocess
import sys
import time

from metasearch.config.launchers import LauncherConfig
from metasearch.io import write_error
from metasearch.pipelines.study.folder import StudyFolder

# OpenMP, MKL and OpenBLAS serve torch and numpy; Rayon runs the tokenizers, which are written in Rust.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
"""Variables that say how many threads a process takes."""
_ATTEMPT = "--- attempt "
_ERROR = "metasearch: error: "


def threads_of(place: LauncherConfig, jobs: int) -> int:
    """Return the threads of each process: the cores that are asked for, or those of this machine shared out."""
    if not place.together:
        return int(place.settings.get("cpus", 1))
    # The cores that this process may use, which `taskset` or a container may limit; macOS does not tell.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // jobs)


def environment(threads: int) -> dict[str, str]:
    """Return the environment of a process with a number of threads."""
    # What the user set wins over the passive wait; unbuffered, the log has the last words of a killed process, too.
    shared = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PYTHONUNBUFFERED": "1"}
    return {**shared, **dict.fromkeys(THREADS, str(threads))}


def start_cell(study: StudyFolder, name: str, threads: int, trust_remote_code: bool) -> subprocess.Popen[bytes]:
    """Go on with a cell, whose run folder is made. It stops by itself, with a checkpoint, when this process ends.

    Raises:
        RunFolderError: the log cannot be written.
    """
    trusted = ["--trust-remote-code"] if trust_remote_code else []
    command = [sys.executable, "-m", "metasearch", "resume", str(study.at(name)), "--until-eof", *trusted]
    begin_attempt(study, name)
    try:
        with study.log(name).open("ab") as log:
            # A session of its own: Ctrl-C on the terminal reaches the runner only, which tells its cells itself.
            # Nothing is ever written to the pipe: it is closed when this process ends, however that happens.
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment(threads), cwd=study.path,
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise write_error(study.log(name), error) from None


def begin_attempt(study: StudyFolder, name: str, error: str = "") -> None:
    """Begin a further attempt in the log of a cell, with the error that ended it before it had a process."""
    log = study.log(name)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{_ATTEMPT}{attempts(study, name) + 1}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
            file.write(f"{_ERROR}{error}\n" if error else "")
    except OSError as failure:
        raise write_error(log, failure) from None


def attempts(study: StudyFolder, name: str) -> int:
    """Return how often a cell was begun."""
    return sum(line.startswith(_ATTEMPT) for line in _log(study, name).splitlines())


def last_error(study: StudyFolder, name: str) -> str:
    """Return the error that the latest attempt at a cell ended with, or its last line; empty when it wrote none."""
    # The rest of the line behind the mark is the attempt's number and time.
    attempt = _log(study, name).rpartition(_ATTEMPT)[2].partition("\n")[2].strip()
    # An error may have several lines: all that follows its mark is taken.
    return attempt.rpartition(_ERROR)[2] if _ERROR in attempt else attempt.rpartition("\n")[2]


def how_ended(code: int) -> str:
    """Return an exit code of `subprocess` in words: `exit code 4`, or `killed by SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"killed by {names.get(-code, f'signal {-code}')}"


def _log(study: StudyFolder, name: str) -> str:
    log = study.log(name)
    # A killed process may have cut a character in two.
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
