"""Where the cells of a study stand."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from metasearch.jobs.crossval.plan import Cell
from metasearch.jobs.crossval.worker import Event

State = Literal["waiting", "running", "done", "failed", "skipped", "stopped"]


@dataclass
class Place:
    """A cell and where it stands.

    Attributes:
        cell: which one.
        state: of it.
        step: outer steps that are done.
        total: outer steps at most; 0 as long as they are not known.
        dev: the latest dev score.
        stage: of a distillation.
        began: when this attempt began, in seconds of `time.monotonic`.
        seconds: that this attempt took, once it has ended.
        error: why it failed, or which cell it would have needed.
    """

    cell: Cell
    state: State = "waiting"
    step: int = 0
    total: int = 0
    dev: float | None = None
    stage: str = ""
    began: float = 0.0
    seconds: float = 0.0
    error: str = ""

    def hear(self, event: Event) -> None:
        """Take note of what the process tells."""
        self.stage = event.get("stage") or ""
        self.step = event.get("step", self.step)
        self.total = event.get("total", self.total)
        self.dev = event.get("dev", self.dev)
        self.error = event.get("error", self.error)

    @property
    def elapsed(self) -> float:
        """Seconds of this attempt."""
        return time.monotonic() - self.began if self.state == "running" else self.seconds


@dataclass
class Board:
    """All cells of a study.

    Attributes:
        places: cell by cell, in the order in which they are begun.
        began: when the runner began, in seconds of `time.monotonic`.
        stopping: whether all that run were asked to stop, and are waited for.
    """

    places: dict[str, Place]
    began: float = field(default_factory=time.monotonic)
    stopping: bool = False

    @classmethod
    def of(cls, cells: Iterable[Cell], done: Iterable[str]) -> "Board":
        """Return the cells, those that are done marked as such."""
        known = set(done)
        return cls({cell.name: Place(cell, "done" if cell.name in known else "waiting") for cell in cells})

    def counts(self) -> Counter[State]:
        """Return how many cells are in each state."""
        return Counter(place.state for place in self.places.values())

    def within(self, *states: State) -> list[Place]:
        """Return the cells in some states."""
        return [place for place in self.places.values() if place.state in states]

    def next(self) -> Place | None:
        """Return the first cell that has all it needs; those that will never have it are marked as skipped."""
        for place in self.within("waiting"):
            needed = [self.places[name] for name in place.cell.needs]
            lost = next((other for other in needed if other.state in ("failed", "skipped")), None)
            if lost is not None:
                place.state, place.error = "skipped", f"it needs {lost.cell.name}, which {_lost(lost)}"
            elif all(other.state == "done" for other in needed):
                return place
        return None


def _lost(place: Place) -> str:
    return "failed" if place.state == "failed" else "is skipped"


class Watcher(Protocol):
    """Hears where the cells stand; live tables and lines are watchers."""

    def changed(self, board: Board, place: Place) -> None:
        """Hear that a cell has another state."""

    def ticked(self, board: Board) -> None:
        """Hear that time has passed, several times a second."""


class Unwatched:
    """A watcher that says nothing."""

    def changed(self, board: Board, place: Place) -> None:
        """Hear of a change."""

    def ticked(self, board: Board) -> None:
        """Hear of time."""
