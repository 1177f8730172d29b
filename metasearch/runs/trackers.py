"""Experiment trackers as callbacks: TensorBoard, Weights & Biases, Trackio and MLflow.

A tracker gets the terms of the loss after each step, and each dev score. It is opened at the first value, so that only
the process that reports opens one. Each stage of a distillation, and each resumed run, is a new run of the tracker.
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
"""Project or experiment of all runs, unless environment variables of the tracker name another one."""

OpenCallback = Callable[[str], AbstractContextManager[Callback]]


class Tracker(Callback):
    """Sends the values of a run, or of a stage, to the experiment tracker `module`."""

    package: ClassVar[str]

    def __init__(self, module: Any, folder: Path, stage: str) -> None:
        self.module = module
        self.folder = folder
        self.name = f"{folder.name}-{stage.replace(' ', '-')}"
        self.run: Any = None

    @abstractmethod
    def _open(self) -> Any:
        """Start a tracker run; return its handle."""

    @abstractmethod
    def _send(self, values: dict[str, float], step: int) -> None:
        """Send a step's values."""

    @abstractmethod
    def _finish(self) -> None:
        """End the tracker run."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Send the loss terms."""
        self._log({f"{phase}/{term}": value for term, value in terms.items()}, step)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Send a dev score."""
        self._log({"dev": score}, step)

    def close(self) -> None:
        """End the tracker run, if a value was sent."""
        if self.run is not None:
            self._finish()

    def _log(self, values: dict[str, float], step: int) -> None:
        try:
            if self.run is None:
                self.run = self._open()
            self._send(values, step)
        except Exception as error:  # each tracker raises errors of its own
            raise ConfigError(f"--track: {self.package} failed: {first_line(error)}") from error


class TensorBoard(Tracker):
    """Writes event files to `tensorboard/` in the run folder."""

    package = "torch.utils.tensorboard"

    def _open(self) -> Any:
        return self.module.SummaryWriter(str(self.folder / "tensorboard" / self.name))

    def _send(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self.run.add_scalar(name, value, step)

    def _finish(self) -> None:
        self.run.close()


class WandB(Tracker):
    """Logs to Weights & Biases; with `WANDB_MODE=offline` to `wandb/` in the run folder."""

    package = "wandb"

    def _open(self) -> Any:
        return self.module.init(project=PROJECT, name=self.name, dir=str(self.folder), reinit="finish_previous")

    def _send(self, values: dict[str, float], step: int) -> None:
        self.run.log(values, step=step)

    def _finish(self) -> None:
        self.run.finish()


class Trackio(Tracker):
    """Logs to Trackio's local database."""

    package = "trackio"

    def _open(self) -> Any:
        return self.module.init(project=PROJECT, name=self.name)

    def _send(self, values: dict[str, float], step: int) -> None:
        self.module.log(values, step=step)

    def _finish(self) -> None:
        self.module.finish()


class MLflow(Tracker):
    """Logs to the server or folder in `MLFLOW_TRACKING_URI`."""

    package = "mlflow"

    def _open(self) -> Any:
        self.module.set_experiment(PROJECT)
        return self.module.start_run(run_name=self.name)

    def _send(self, values: dict[str, float], step: int) -> None:
        self.module.log_metrics(values, step=step)

    def _finish(self) -> None:
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
    """Return a function that opens the same callback with trackers beside it; `names` are keys of `TRACKERS`."""
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
