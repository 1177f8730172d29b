"""Experiment trackers as callbacks: TensorBoard, Weights & Biases, Trackio and MLflow.

A tracker gets the terms of the loss after each step, and each dev score. It is opened at the first value, so that only
the process that reports opens one. A stage of a distillation, and a run that is continued, is a new run of the tracker.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from metasearch.config.extras import import_extra
from metasearch.errors import ConfigError, first_line
from metasearch.runs.callbacks import Callback

PROJECT = "metasearch"
"""Project or experiment of all runs in a tracker, unless the tracker's own environment variables name another one."""

OpenCallback = Callable[[str], AbstractContextManager[Callback]]


class Tracker(Callback):
    """Send a run's values to an experiment tracker.

    Args:
        module: the tracker's package.
        folder: run folder.
        stage: learner, or stage of a distillation.
    """

    package: ClassVar[str]

    def __init__(self, module: Any, folder: Path, stage: str) -> None:
        self.module = module
        self.folder = folder
        self.stage = stage
        self.run: Any = None

    @abstractmethod
    def open(self) -> Any:
        """Start a tracker run; return its handle."""

    @abstractmethod
    def send(self, values: dict[str, float], step: int) -> None:
        """Send a step's values."""

    @abstractmethod
    def finish(self) -> None:
        """End the tracker run."""

    @property
    def name(self) -> str:
        """Name of the run in the tracker."""
        return f"{self.folder.name}-{self.stage.replace(' ', '-')}"

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Send the loss terms."""
        self._log({f"{phase}/{term}": value for term, value in terms.items()}, step)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Send a dev score."""
        self._log({"dev": score}, step)

    def close(self) -> None:
        """End the tracker run, if a value was sent."""
        if self.run is not None:
            self.finish()

    def _log(self, values: dict[str, float], step: int) -> None:
        try:
            if self.run is None:
                self.run = self.open()
            self.send(values, step)
        except Exception as error:  # each tracker raises errors of its own
            raise ConfigError(f"--track: {self.package} failed: {first_line(error)}") from error


class TensorBoard(Tracker):
    """Writes event files to `tensorboard/` in the run folder."""

    package = "torch.utils.tensorboard"

    def open(self) -> Any:
        """Begin the event file."""
        return self.module.SummaryWriter(str(self.folder / "tensorboard" / self.name))

    def send(self, values: dict[str, float], step: int) -> None:
        """Add scalars."""
        for name, value in values.items():
            self.run.add_scalar(name, value, step)

    def finish(self) -> None:
        """Close the event file."""
        self.run.close()


class WandB(Tracker):
    """Logs to Weights & Biases; with `WANDB_MODE=offline` to `wandb/` in the run folder."""

    package = "wandb"

    def open(self) -> Any:
        """Begin a run."""
        return self.module.init(project=PROJECT, name=self.name, dir=str(self.folder), reinit="finish_previous")

    def send(self, values: dict[str, float], step: int) -> None:
        """Log values."""
        self.run.log(values, step=step)

    def finish(self) -> None:
        """Finish the run."""
        self.run.finish()


class Trackio(Tracker):
    """Log to Trackio's local database."""

    package = "trackio"

    def open(self) -> Any:
        """Begin a run."""
        return self.module.init(project=PROJECT, name=self.name)

    def send(self, values: dict[str, float], step: int) -> None:
        """Log values."""
        self.module.log(values, step=step)

    def finish(self) -> None:
        """Finish the run."""
        self.module.finish()


class MLflow(Tracker):
    """Logs to the server or folder in `MLFLOW_TRACKING_URI`."""

    package = "mlflow"

    def open(self) -> Any:
        """Begin a run in the experiment `metasearch`."""
        self.module.set_experiment(PROJECT)
        return self.module.start_run(run_name=self.name)

    def send(self, values: dict[str, float], step: int) -> None:
        """Log metrics."""
        self.module.log_metrics(values, step=step)

    def finish(self) -> None:
        """End the run."""
        self.module.end_run()


TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WandB, "trackio": Trackio, "mlflow": MLflow}


class CallbackGroup(Callback):
    """Calls several callbacks in turn."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
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


def add_trackers(open_callback: OpenCallback, names: Sequence[str], folder: Path) -> OpenCallback:
    """Return what opens the same callback with trackers beside it.

    Args:
        open_callback: opens the callback of a run or stage by its name.
        names: keys of `TRACKERS`; none returns `open_callback`.
        folder: run folder.

    Raises:
        ConfigError: the package of a tracker is not installed.
    """
    if not names:
        return open_callback
    found = [
        (TRACKERS[name], import_extra(TRACKERS[name].package, "track", f"--track {name}"))
        for name in dict.fromkeys(names)
    ]

    @contextmanager
    def opened(stage: str) -> Iterator[Callback]:
        trackers = [kind(module, folder, stage) for kind, module in found]
        with open_callback(stage) as callback:
            try:
                yield CallbackGroup([callback, *trackers])
            finally:
                for tracker in trackers:
                    tracker.close()

    return opened
