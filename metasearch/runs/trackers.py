"""Experiment trackers: TensorBoard, Weights & Biases and MLflow.

A tracker gets the terms of the loss after each step, and each dev score. Each stage of a distillation, and each resumed
run, is a new run of the tracker. A thread calls it, so that neither an outage nor a slow server stops training. A curve
may then lack values; `log.jsonl` has all of them.
"""

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError, first_line
from metasearch.runs.callbacks import Callback, CallbackGroup, OpenCallback

PROJECT = "metasearch"
"""Project or experiment of all runs, unless the tracker's environment variables name another."""
START_SECONDS = 60.0
END_SECONDS = 30.0
"""Time that a tracker has to begin a run, and at its end to send what is left."""

log = logging.getLogger(__name__)

OpenRun = tuple[Callable[..., Any], Callable[[bool], Any]]
"""Functions of a tracker's run: one sends `(values, step=step)`, the other ends the run, which failed or not."""


def _tensorboard(module: Any, folder: Path, name: str) -> OpenRun:
    """Write event files to `tensorboard/` in the run folder."""
    writer = module.SummaryWriter(str(folder / "tensorboard" / name))

    def send(values: Mapping[str, float], step: int) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, step)

    return send, lambda failed: writer.close()


def _wandb(module: Any, folder: Path, name: str) -> OpenRun:
    """Log to Weights & Biases; with `WANDB_MODE=offline` to `wandb/` in the run folder."""
    # Arguments override environment variables.
    own = {"project": PROJECT, "name": name, "dir": str(folder)}
    run = module.init(
        **{key: value for key, value in own.items() if not os.environ.get(f"WANDB_{key.upper()}")},
        reinit="finish_previous",
    )
    return run.log, lambda failed: run.finish(**{"exit_code": 1} if failed else {})


def _mlflow(module: Any, folder: Path, name: str) -> OpenRun:
    """Log to the server or folder in `MLFLOW_TRACKING_URI`."""
    if not any(os.environ.get(f"MLFLOW_{each}") for each in ("EXPERIMENT_NAME", "EXPERIMENT_ID", "RUN_ID")):
        module.set_experiment(PROJECT)
    module.start_run(run_name=name)
    return module.log_metrics, lambda failed: module.end_run(**{"status": "FAILED"} if failed else {})


TRACKERS: Mapping[str, tuple[str, Callable[[Any, Path, str], OpenRun]]] = {
    "tensorboard": ("torch.utils.tensorboard", _tensorboard),
    "wandb": ("wandb", _wandb),
    "mlflow": ("mlflow", _mlflow),
}
"""Name → the package, and the function that starts a run of it."""


class Tracker(Callback):
    """Sends a run's or stage's values to an experiment tracker. The first error is one warning."""

    def __init__(self, package: str, start: Callable[[], OpenRun]) -> None:
        self.package = package
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._warned = False
        # A daemon, so that a call that never returns does not keep the process. Some trackers keep their run in the
        # thread that began it, so that one thread calls all functions.
        threading.Thread(target=self._work, daemon=True, name=f"track-{package}").start()
        self._run: Future[OpenRun] = self._put(start)

    def require_start(self) -> None:
        """Raise `ConfigError` unless the tracker has begun a run."""
        if error := _error_of(self._run, START_SECONDS):
            raise ConfigError(f"--track: {self.package} failed: {first_line(error)}") from error

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Send the loss terms."""
        self._send({f"{phase}/{term}": value for term, value in terms.items()}, step)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Send a dev score."""
        self._send({"dev": score}, step)

    def close(self, kind: type[BaseException] | None, *exception: object) -> None:
        """End the tracker's run, once all values are sent; as a failed one if the work raised an exception."""
        ended = self._put(lambda: self._run.result()[1](kind is not None))
        self._calls.put(None)
        error = _error_of(ended, END_SECONDS)
        self._error = self._error or error
        self._warn()

    def _send(self, values: dict[str, float], step: int) -> None:
        self._put(lambda: self._run.result()[0](values, step=step))
        self._warn()

    def _warn(self) -> None:
        """Warn of the first error; in the training's thread, which draws the progress bar."""
        if self._error and not self._warned:
            self._warned = True
            log.warning(
                "--track: %s failed: %s; training continues, and log.jsonl has all values",
                self.package, first_line(self._error),
            )  # fmt: skip

    def _put(self, function: Callable[[], Any]) -> Future[Any]:
        result: Future[Any] = Future()
        self._calls.put((function, result))
        return result

    def _work(self) -> None:
        """Call what comes, in its order."""
        for function, result in iter(self._calls.get, None):
            try:
                result.set_result(function())
            except BaseException as error:  # each tracker raises errors of its own, also `SystemExit`
                self._error = self._error or error
                result.set_exception(error)


def _error_of(result: Future[Any], seconds: float) -> BaseException | None:
    try:
        return result.exception(seconds)
    except TimeoutError:
        return TimeoutError(f"no answer within {seconds:g} s")


def add_trackers(open_callback: OpenCallback, names: Sequence[str], folder: Path) -> OpenCallback:
    """Return a function that opens the same callback with trackers beside it; `names` are keys of `TRACKERS`.

    A tracker that cannot begin its first run is a `ConfigError`, before anything is trained.
    """
    if not names:
        return open_callback
    packages = {name: TRACKERS[name][0] for name in names}
    modules = {name: _import(package, name) for name, package in packages.items()}
    begun: set[str] = set()

    @contextmanager
    def opened(stage: str) -> Iterator[Callback]:
        run = f"{folder.name}-{stage.replace(' ', '-')}"
        with open_callback(stage) as callback, ExitStack() as stack:
            trackers = []
            for name, module in modules.items():
                tracker = Tracker(packages[name], partial(TRACKERS[name][1], module, folder, run))
                if name not in begun:
                    tracker.require_start()
                    begun.add(name)
                stack.push(tracker.close)
                trackers.append(tracker)
            yield CallbackGroup(callback, *trackers)

    return opened


def _import(package: str, name: str) -> Any:
    try:
        return import_extra(package, "track", f"--track {name}")
    except ConfigError:
        raise
    except Exception as error:  # such as incompatible versions of packages
        raise ConfigError(f"--track: {package} cannot be imported: {first_line(error)}") from error
