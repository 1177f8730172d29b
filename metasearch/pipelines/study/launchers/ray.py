"""Cells on the nodes of a Ray cluster that is there; this process is its driver.

Each cell has an actor, which holds the cores, GPUs and memory that are asked for, and begins the cell's process as
the launcher `local` would, on its node. That process stops with a checkpoint when its actor is gone, or this driver.
"""

import os
import signal
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from metasearch.config.launchers import LauncherConfig
from metasearch.errors import ConfigError, Interrupted, first_line
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers.base import QUEUED, RUNNING, JobStatus
from metasearch.pipelines.study.process import start_cell

_PASSED = ("METASEARCH_", "HF_", "PYTHONPATH")
"""Beginnings of the names of variables that cells have from this process; the others they have from their node."""
_ANSWER_SECONDS = 10
_BYTES = {"M": 2**20, "G": 2**30, "T": 2**40}


class _Cell:
    """The process of a cell, on a node of the cluster."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._stopped = False

    def run(self, study: str, name: str, threads: int, trust: bool) -> int:
        """Run the cell's process; return its exit code."""
        if self._stopped:
            return Interrupted.exit_code
        self._process = start_cell(StudyFolder(Path(study)), name, threads, trust)
        return self._process.wait()

    def here(self) -> None:
        """Return, which tells that this has its place on a node."""

    def stop(self, kill: bool) -> None:
        """Send SIGTERM, at which a cell saves a checkpoint, or SIGKILL."""
        self._stopped = True
        if self._process is not None:
            (self._process.kill if kill else self._process.terminate)()


@dataclass(frozen=True)
class _Begun:
    """A cell that was begun: its actor, and what will tell that it has a node, and its exit code."""

    actor: Any
    here: Any
    code: Any


class Ray:
    """The actors of a study's cells."""

    tick = 1.0

    def __init__(self, place: LauncherConfig, study: StudyFolder, stored: StudyMetadata) -> None:
        self._study = study
        self._config = stored.config
        self._asked = _resources(place, stored.config.threads or 1)
        self._begun: dict[str, _Begun] = {}
        _connect(place.settings.get("address", "auto"))

    def start(self, names: Sequence[str]) -> Collection[str]:
        """Begin cells, each as soon as a node has room for it."""
        _require_node(self._asked)
        # Two calls at a time, so that a cell can be stopped while it runs.
        actors = ray.remote(_Cell).options(**self._asked, max_concurrency=2, max_restarts=0)
        threads, trust = self._config.threads or 1, self._config.encoder.trust_remote_code
        for name in names:
            actor = actors.remote()
            code = actor.run.remote(str(self._study.path), name, threads, trust)
            self._begun[name] = _Begun(actor, actor.here.remote(), code)
        return names

    def look(self) -> Mapping[str, JobStatus]:
        """Return how the actors are."""
        seen = {name: _seen(each) for name, each in self._begun.items()}
        # An actor without a name goes with the last that knows it, and its place is free.
        self._begun = {name: each for name, each in self._begun.items() if seen[name].state != "ended"}
        return seen

    def stop(self, kill: bool) -> None:
        """Ask the cells to save a checkpoint and end, or kill them; those that wait for a node go at once."""
        for each in self._begun.values():
            if _ready(each.here):
                each.actor.stop.remote(kill)
            else:
                ray.kill(each.actor)


def _connect(address: str) -> None:
    """Become a driver of a cluster; `ConfigError` where there is none."""
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
    # Ray takes SIGTERM for itself, which here stops a study properly.
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _require_answer(os.environ.get("RAY_ADDRESS", "") if address == "auto" else address)
        ray.init(address, runtime_env={"env_vars": passed}, log_to_driver=False, logging_level="error")
    except (RayError, OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"no Ray cluster at address '{address}': {first_line(error)}. Start one with: ray start --head, or name it "
            "by RAY_ADDRESS or --launcher-set address=HOST:PORT; `ray status` shows it"
        ) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _require_answer(address: str) -> None:
    """Raise `OSError` where nothing answers at `HOST:PORT`: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()


def _resources(place: LauncherConfig, threads: int) -> dict[str, Any]:
    """Return what a cell needs, as options of an actor."""
    asked: dict[str, Any] = {"num_cpus": int(place.settings.get("cpus", threads))}
    if gpus := int(place.settings.get("gpus", 0)):
        asked["num_gpus"] = gpus
    if memory := place.settings.get("memory"):
        asked["memory"] = int(memory[:-1]) * _BYTES[memory[-1]]
    return asked


def _require_node(asked: Mapping[str, Any]) -> None:
    """Raise `ConfigError` where no node, idle or not, has what a cell needs: it would wait forever."""
    names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    needed = {names[key]: value for key, value in asked.items()}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(name, 0) >= value for name, value in needed.items()) for node in nodes):
        said = ", ".join(f"{name} {value:,}" for name, value in needed.items())
        raise ConfigError(f"no node of the Ray cluster has what a cell needs, {said}; `ray status` shows what there is")


def _seen(begun: _Begun) -> JobStatus:
    if not _ready(begun.code):
        return RUNNING if _ready(begun.here) else QUEUED
    try:
        return JobStatus("ended", ray.get(begun.code))
    except RayActorError as error:
        return JobStatus("ended", None, f"its node or worker of Ray is gone: {first_line(error)}", again=True)
    except RayError as error:
        # What `start_cell` has raised on the node, such as for a folder that is not there.
        cause = getattr(error, "cause", None) or error
        return JobStatus("ended", None, f"its worker of Ray failed: {first_line(cause)}")


def _ready(reference: Any) -> bool:
    return bool(ray.wait([reference], timeout=0)[0])


LAUNCHER = Ray
