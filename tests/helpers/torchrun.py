"""Runs modules in several processes by torchrun, as a user does, and ends one of them."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import metasearch

_HERE = [str(Path(metasearch.__file__).parents[1]), str(Path(__file__).parents[1])]
SECONDS = 400


def started(count, *module, errors=subprocess.PIPE):
    """Start `-m MODULE ARGS` in so many processes of one thread each; of one process without torchrun."""
    path = os.pathsep.join([*_HERE, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    # `--standalone` finds a port of its own.
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"] if count > 1 else []
    command = [sys.executable, *torchrun, "-m", *map(str, module)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)


def finished(process):
    """Return the exit code of a process and what it wrote to stdout and stderr, once it has ended."""
    out, errors = process.communicate(timeout=SECONDS)
    return process.returncode, out, errors


def by_torchrun(count, *module):
    """Do both."""
    return finished(started(count, *module))


def said(errors):
    """Return the errors of metasearch, and the exit codes of its processes as torchrun lists them."""
    lines = [line for line in errors.splitlines() if line.startswith("metasearch: error:")]
    return lines, {int(code) for code in re.findall(r"exitcode\s*: (-?\d+)", errors)}


def wait_for(path, process):
    """Wait until a path is there, while a process runs."""
    until = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None, "it has ended before"
        assert time.monotonic() < until
        time.sleep(0.02)


def process_of(rank, agent):
    """Return the id of the process of a rank below torchrun."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text(encoding="ascii").split()
    for child in children:
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in environment:
            return int(child)
    raise AssertionError(f"no process of rank {rank}")
