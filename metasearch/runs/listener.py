"""Listeners of the training loop: the protocol, one that keeps silent, and one that writes the log."""

from typing import Protocol

from metasearch.runs.folder import RunFolder


class Listener(Protocol):
    """Hears what happens in the loop; progress bars and logs are listeners."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Hear of an outer step, counted from 1."""

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Hear of a dev score; step 0 is the untrained encoder."""

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Hear how many of the texts are encoded, of what is scored; `what` says what that is."""


class Silent:
    """A listener that hears and says nothing."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Hear of a step."""

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Hear of a dev score."""

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Hear of texts."""


class Logged:
    """A listener that writes steps and dev scores to the run's log, then passes them on."""

    def __init__(self, files: RunFolder, listener: Listener) -> None:
        self.files = files
        self.listener = listener

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Log a step."""
        self.files.log({"step": step, "total": total, "phase": phase, **terms})
        self.listener.on_step(step, total, phase, terms)

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Log a dev score."""
        self.files.log({"step": step, "dev": score, "best": best})
        self.listener.on_dev(step, score, best)

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Pass it on."""
        self.listener.on_encode(what, done, total)
