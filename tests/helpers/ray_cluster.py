"""A real Ray cluster on this machine: a head without cores, and nodes, each begun by `ray start`."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from metasearch.config.extras import install_line

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
_STORE = "--object-store-memory=80000000"
"""The least that Ray takes: nothing is stored."""


class RayCluster:
    """Nodes by name; a node is a process group of its own."""

    def __init__(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._folder, self.nodes = folder, {}
        self.flags = ["--launcher=ray", f"--launcher-set=address=127.0.0.1:{self.port} cpus=1"]

    def begin_head(self):
        """Start the head."""
        self._begin("head", "--head", f"--port={self.port}", "--num-cpus=0", "--include-dashboard=false")

    def begin_node(self, name, cpus=1, **variables):
        """Start a node; `variables` are Ray's own settings."""
        self._begin(name, f"--address=127.0.0.1:{self.port}", f"--num-cpus={cpus}", **variables)

    def kill(self, *names):
        """Kill nodes with all their workers, as when a machine loses its power."""
        for name in names:
            process = self.nodes.pop(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def kill_worker(self):
        """Kill a process in which a task may run, as the kernel does where memory is short; return whether one is."""
        import psutil

        found = []
        for node in self.nodes.values():
            for each in psutil.Process(node.pid).children(recursive=True):
                with suppress(psutil.Error):
                    title = "".join(each.cmdline())
                    # A node ends with its agents.
                    found += [each] if title.startswith("ray::") and "Agent" not in title else []
        if found:
            with suppress(psutil.Error):
                random.choice(found).kill()
        return bool(found)

    def restart_head(self, seconds=0):
        """Kill the head's server and start it again as it was; `ray start` refuses where nodes of its cluster live."""
        (server,) = (
            path.parent
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if f"--gcs_server_port={self.port}\0" in _read(path)
        )
        command = _read(server / "cmdline").rstrip("\0").split("\0")
        os.kill(int(server.name), signal.SIGKILL)
        time.sleep(seconds)
        log = (self._folder / "server.log").open("w")
        self.nodes["server"] = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **QUIET}
        )

    def _begin(self, name, *options, **variables):
        command = [Path(sys.executable).with_name("ray"), "start", "--block", _STORE, "--node-ip-address=127.0.0.1"]
        command += [f"--temp-dir={self._folder}"] if "--head" in options else []
        log = self._folder / f"{name}.log"
        with log.open("w") as file:
            self.nodes[name] = subprocess.Popen(
                [*command, *options], stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **QUIET, **variables},
            )  # fmt: skip
        deadline = time.monotonic() + 120
        while "Ray runtime started" not in log.read_text():
            assert self.nodes[name].poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)


def _read(path):
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


@contextmanager
def cluster():
    """Yield a head and two nodes of one core; skip the test where Ray is not installed."""
    ray = pytest.importorskip("ray", reason=f"Ray is not installed: {install_line('ray')}")
    # Ray takes the machine's own address for 127.0.0.1.
    os.environ["METASEARCH_TESTS_OWN_ADDRESS"] = ray.util.get_node_ip_address()
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        here = RayCluster(Path(folder))
        try:
            here.begin_head()
            for name in ("one", "two"):
                here.begin_node(name)
            yield here
        finally:
            here.kill(*here.nodes)
