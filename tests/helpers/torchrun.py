"""Runs several processes of one run: by torchrun, as a user does, or as forks of this process, which is quicker."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import metasearch
from helpers.forks import Fork

SECONDS = 400


def by_torchrun(count, *args):
    """Run `metasearch ARGS` in several processes of one thread each; return exit code, stdout and stderr."""
    path = os.pathsep.join([str(Path(metasearch.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    # `--standalone` finds a port of its own.
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    command = [sys.executable, *torchrun, "-m", "metasearch", *map(str, args)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def forked(count, call):
    """Start a call in several forks of this process, which find each other as the processes of torchrun do."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": f"{count}", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
    return [Fork(call, RANK=f"{rank}", LOCAL_RANK=f"{rank}", **shared) for rank in range(count)]


def ended(forks):
    """Wait for forks; return the set of their exit codes, and the errors of metasearch that they wrote."""
    codes, _, errors = zip(*(fork.finished() for fork in forks), strict=True)
    lines = [line for text in errors for line in text.splitlines() if line.startswith("metasearch: error:")]
    return set(codes), lines
