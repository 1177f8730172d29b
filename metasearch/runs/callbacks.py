"""Callbacks for training, scoring and indexing, such as progress bars and the run log."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from metasearch.runs.folder import RunFolder


class Callback:
    """Base class for callbacks; every hook does nothing by default."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Called after an optimizer step, counted from 1, with its loss terms."""

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Called with each dev score; step 0 is the base encoder."""

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
