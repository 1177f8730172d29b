"""The places where studies run in tests: this machine, the commands of Slurm, and a Ray cluster."""

import subprocess
import sys
import time
from contextlib import contextmanager
from tempfile import TemporaryFile

from helpers import ray_cluster, slurm

LAUNCHERS = ("local", "slurm", "ray")


@contextmanager
def place(name, folder):
    """Yield the flags that let a study run there, and what stands for the cluster."""
    if name == "local":
        yield [], None
    elif name == "slurm":
        with slurm.cluster(folder):
            yield ["--launcher=slurm", "--launcher-set=cpus=1"], None
    else:
        with ray_cluster.cluster() as cluster:
            yield cluster.flags, cluster


class Runner:
    """A runner of a study in a process of its own, as a user begins it; it is killed where the test ends before it."""

    def __init__(self, *args):
        command = [sys.executable, "-m", "metasearch", *map(str, args)]
        self._said, self._wrote = (TemporaryFile("w+") for _ in range(2))  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=self._said, stderr=self._wrote)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.killed()

    def wrote(self):
        """Return what it has written to stderr."""
        self._wrote.seek(0)
        return self._wrote.read()

    def until(self, reached, seconds=500):
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not reached():
            assert self.process.poll() is None, self.wrote()
            assert time.monotonic() < deadline, self.wrote()
            time.sleep(0.05)

    def send(self, number):
        """Send a signal."""
        self.process.send_signal(number)

    def ended(self):
        """Wait for its end; return exit code and what it wrote."""
        code = self.process.wait(timeout=500)
        self._said.seek(0)
        return code, self._said.read(), self.wrote()

    def killed(self):
        """Kill it as `kill -9` does."""
        self.process.kill()
        self.process.wait()
