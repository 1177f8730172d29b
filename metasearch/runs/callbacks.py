"""Callbacks for training, scoring and indexing, such as progress bars, the run log and experiment trackers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError, first_line
from metasearch.runs.folder import RunFolder


class Callback:
    """Base class for callbacks; every hook does nothing by default."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Called after an optimizer step, counted from 1, with its loss terms."""

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Called with each dev score; step 0 is the untrained encoder."""

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Called after each encoded batch; `what` is its purpose."""

    def on_count(self, what: str, done: int, total: int) -> None:
        """Called during other work; `what` is counted, such as `documents read`, and a total of 0 is unknown."""


SILENT = Callback()

OpenCallback = Callable[[str], AbstractContextManager[Callback]]
"""Opens a callback for a run, or for a stage of one, by its name."""


class CallbackGroup(Callback):
    """Calls the training hooks of several callbacks in turn."""

    def __init__(self, *callbacks: Callback) -> None:
        self.callbacks = callbacks

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Call `on_step` on each callback."""
        for callback in self.callbacks:
            callback.on_step(step, total, phase, terms)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Call `on_dev` on each callback."""
        for callback in self.callbacks:
            callback.on_dev(step, score, best)

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Call `on_encode` on each callback."""
        for callback in self.callbacks:
            callback.on_encode(what, done, total)


class RunLog(Callback):
    """Writes steps and dev scores to the log of a run."""

    def __init__(self, files: RunFolder) -> None:
        self.files = files

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Log a step."""
        self.files.log({"step": step, "total": total, "phase": phase, **terms})

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Log a dev score."""
        self.files.log({"step": step, "dev": score, "best": best})


# Experiment trackers: TensorBoard, Weights & Biases, Trackio and MLflow. A tracker gets the terms of the loss after
# each step, and each dev score. It is opened at the first value, so that only the process that reports opens one. Each
# stage of a distillation, and each resumed run, is a new run of the tracker.

PROJECT = "metasearch"
"""Project or experiment of all runs, unless the tracker's environment variables name another."""

OpenRun = tuple[Callable[..., Any], Callable[[], Any]]
"""Functions of a tracker's run: one sends `(values, step=step)`, the other ends the run."""


def _tensorboard(module: Any, folder: Path, name: str) -> OpenRun:
    """Write event files to `tensorboard/` in the run folder."""
    writer = module.SummaryWriter(str(folder / "tensorboard" / name))

    def send(values: Mapping[str, float], step: int) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, step)

    return send, writer.close


def _wandb(module: Any, folder: Path, name: str) -> OpenRun:
    """Log to Weights & Biases; with `WANDB_MODE=offline` to `wandb/` in the run folder."""
    run = module.init(project=PROJECT, name=name, dir=str(folder), reinit="finish_previous")
    return run.log, run.finish


def _trackio(module: Any, folder: Path, name: str) -> OpenRun:
    """Log to Trackio's local database."""
    module.init(project=PROJECT, name=name)
    return module.log, module.finish


def _mlflow(module: Any, folder: Path, name: str) -> OpenRun:
    """Log to the server or folder in `MLFLOW_TRACKING_URI`."""
    module.set_experiment(PROJECT)
    module.start_run(run_name=name)
    return module.log_metrics, module.end_run


TRACKERS: Mapping[str, tuple[str, Callable[[Any, Path, str], OpenRun]]] = {
    "tensorboard": ("torch.utils.tensorboard", _tensorboard),
    "wandb": ("wandb", _wandb),
    "trackio": ("trackio", _trackio),
    "mlflow": ("mlflow", _mlflow),
}
"""Name → the package, and the function that starts a run of it."""


class Tracker(Callback):
    """Sends a run's or stage's values to an experiment tracker."""

    def __init__(self, package: str, start: Callable[[], OpenRun]) -> None:
        self.package, self._start = package, start
        self._run: OpenRun | None = None

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Send the loss terms."""
        self._log({f"{phase}/{term}": value for term, value in terms.items()}, step)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Send a dev score."""
        self._log({"dev": score}, step)

    def close(self) -> None:
        """End the tracker run, if a value was sent."""
        if self._run is not None:
            _, end = self._run
            end()

    def _log(self, values: dict[str, float], step: int) -> None:
        try:
            if self._run is None:
                self._run = self._start()
            send, _ = self._run
            send(values, step=step)
        except Exception as error:  # each tracker raises errors of its own
            raise ConfigError(f"--track: {self.package} failed: {first_line(error)}") from error


def add_trackers(open_callback: OpenCallback, names: Sequence[str], folder: Path) -> OpenCallback:
    """Return a function that opens the same callback with trackers beside it; `names` are keys of `TRACKERS`."""
    if not names:
        return open_callback
    packages = {name: TRACKERS[name][0] for name in names}
    modules = {name: import_extra(package, "track", f"--track {name}") for name, package in packages.items()}

    @contextmanager
    def opened(stage: str) -> Iterator[Callback]:
        run = f"{folder.name}-{stage.replace(' ', '-')}"
        trackers = [
            Tracker(packages[name], partial(TRACKERS[name][1], module, folder, run)) for name, module in modules.items()
        ]
        with open_callback(stage) as callback:
            try:
                yield CallbackGroup(callback, *trackers)
            finally:
                for tracker in trackers:
                    tracker.close()

    return opened
