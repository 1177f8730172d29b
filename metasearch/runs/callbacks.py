"""Callbacks for training, scoring and indexing, such as progress bars and the run log."""

from metasearch.runs.folder import RunFolder


class Callback:
    """Base class for callbacks; every hook does nothing by default."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Called after an optimizer step, counted from 1, with its loss terms."""

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Called with each dev score; step 0 is the untrained encoder."""

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Called after each encoded batch; `what` is its purpose."""

    def on_read(self, done: int, total: int) -> None:
        """Called after each document is read for an index."""

    def on_prepare(self, what: str, done: int, total: int) -> None:
        """Called during a corpus preparation; `what` is counted, and a total of 0 is unknown."""


SILENT = Callback()


class LoggingCallback(Callback):
    """Writes steps and dev scores to the log of a run, then calls another callback."""

    def __init__(self, files: RunFolder, callback: Callback) -> None:
        self.files = files
        self.callback = callback

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Log a step."""
        self.files.log({"step": step, "total": total, "phase": phase, **terms})
        self.callback.on_step(step, total, phase, terms)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Log a dev score."""
        self.files.log({"step": step, "dev": score, "best": best})
        self.callback.on_dev(step, score, best)

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Call the other callback."""
        self.callback.on_encode(what, done, total)
