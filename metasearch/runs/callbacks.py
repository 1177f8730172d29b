"""What hears of training and scoring; progress bars and logs are listeners."""

from metasearch.runs.folder import RunFolder


class Listener:
    """Hears what happens and says nothing; a subclass overrides what it wants to hear of."""

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Hear of an outer step, counted from 1."""

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Hear of a dev score; step 0 is the untrained encoder."""

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Hear how many texts are encoded; `what` says what they are encoded for."""

    def on_read(self, done: int, total: int) -> None:
        """Hear how many documents of an index are read."""

    def on_prepare(self, what: str, done: int, total: int) -> None:
        """Hear how much of a corpus is prepared; `what` is counted, and a total of 0 is one that is not known."""


SILENT = Listener()


class Logged(Listener):
    """Writes steps and dev scores to the run's log, then passes them on."""

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
