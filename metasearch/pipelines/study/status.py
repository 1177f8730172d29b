"""The status of the cells of a study."""

import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Literal

from metasearch.pipelines.study.plan import Cell
from metasearch.runs.log import last_line, read_latest

_TEXTS = re.compile(r"\d+/\d+ texts")

State = Literal["waiting", "queued", "running", "done", "failed", "skipped", "stopped"]


@dataclass(eq=False)
class CellStatus:
    """How far a cell is.

    Attributes:
        cell: the cell.
        state: its state.
        step: number of outer steps that are done.
        total: number of outer steps at most; 0 as long as it is not known.
        dev: the latest dev score.
        stage: name of the stage, of a distillation.
        texts: how many texts are encoded, such as `3000/12000 texts`, while the cell is scored; empty otherwise.
        began: when this attempt began, in seconds of `time.monotonic`.
        seconds: time that this attempt took, once it has ended.
        error: why it failed, or which cell it would have needed.
        attempted: whether this runner has made its folder.
        fruitless: attempts in a row that were stopped from outside without a further step.
    """

    cell: Cell
    state: State = "waiting"
    step: int = 0
    total: int = 0
    dev: float | None = None
    stage: str = ""
    texts: str = ""
    began: float = 0.0
    seconds: float = 0.0
    error: str = ""
    attempted: bool = False
    fruitless: int = 0
    _best: tuple[str, int] = ("", 0)

    def further(self) -> bool:
        """Note that an attempt was stopped from outside; return whether it came further than those before it."""
        stage, best = self._best
        # From an older checkpoint the same steps come again, which is no progress.
        came = self.stage != stage or self.step > best
        self._best = (self.stage, self.step) if came else self._best
        self.fruitless = 0 if came else self.fruitless + 1
        return came

    def follow(self, folder: Path) -> None:
        """Take note of the latest events in the log of the cell's run, or of the stage that is at work."""
        logs = [path for path in (folder / "log.jsonl", *folder.glob("*/log.jsonl")) if path.is_file()]
        if not logs:
            return
        # A distillation logs in the folders of its stages: the newest log is that of the stage at work.
        log = max(logs, key=lambda path: path.stat().st_mtime)
        self.stage = "" if log.parent == folder else log.parent.name.partition("-")[2]
        # Steps name the total and dev scores the score: what an event lacks stays as it was.
        for event in read_latest(log):
            self.step = event["step"]
            self.total = event.get("total", self.total)
            self.dev = event.get("dev", self.dev)

    def hear(self, said: Path, folder: Path) -> None:
        """Take note of the texts that the cell's process last said to be encoded, unless it takes steps since then.

        Args:
            said: what the process writes, line by line.
            folder: its run folder, whose log has the steps.
        """
        steps, self.texts = folder / "log.jsonl", ""
        if not said.is_file():
            return
        newer = not steps.is_file() or said.stat().st_mtime > steps.stat().st_mtime
        found = _TEXTS.search(last_line(said)) if newer else None
        self.texts = found[0] if found else ""

    @property
    def elapsed(self) -> float:
        """Seconds of this attempt."""
        return time.monotonic() - self.began if self.state == "running" else self.seconds


@dataclass
class StatusBoard:
    """All cells of a study.

    Attributes:
        cells: status by name of the cell, in the order in which cells are begun.
        began: when the runner began, in seconds of `time.monotonic`.
        stopping: whether all that run were asked to stop, and are waited for.
    """

    cells: dict[str, CellStatus]
    began: float = field(default_factory=time.monotonic)
    stopping: bool = False

    @classmethod
    def of(cls, cells: Iterable[Cell], done: Iterable[str]) -> "StatusBoard":
        """Return the cells, those that are done marked as such."""
        known = set(done)
        return cls({cell.name: CellStatus(cell, "done" if cell.name in known else "waiting") for cell in cells})

    def counts(self) -> Counter[State]:
        """Return how many cells are in each state."""
        return Counter(status.state for status in self.cells.values())

    def within(self, *states: State) -> list[CellStatus]:
        """Return the cells in some states."""
        return [status for status in self.cells.values() if status.state in states]

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all cells are done, side by side as now; None as long as there is nothing to go by.

        A cell takes the mean time of its arm in this call, or before one is done that of its kind.
        """
        took: dict[str, list[float]] = {}
        for status in self.within("done"):
            if status.seconds:
                took.setdefault(f"arm {status.cell.arm}", []).append(status.seconds)
                took.setdefault(f"kind {status.cell.kind}", []).append(status.seconds)
        left = 0.0
        for status in self.within("waiting", "queued", "running"):
            known = took.get(f"arm {status.cell.arm}") or took.get(f"kind {status.cell.kind}")
            if not known:
                return None
            left += max(0.0, mean(known) - status.elapsed)
        return left / max(1, len(self.at_work))

    @property
    def at_work(self) -> list[CellStatus]:
        """The cells that were begun and have not ended."""
        return self.within("queued", "running")

    def next(self) -> CellStatus | None:
        """Return the first cell that has all it needs; those that will never have it are marked as skipped."""
        for status in self.within("waiting"):
            # Cells stand after those that they need, so a skip is handed on within the same pass.
            needed = [self.cells[name] for name in status.cell.needs]
            lost = next((other for other in needed if other.state in ("failed", "skipped")), None)
            if lost is not None:
                why = "failed" if lost.state == "failed" else "is skipped"
                status.state, status.error = "skipped", f"it needs {lost.cell.name}, which {why}"
            elif all(other.state == "done" for other in needed):
                return status
        return None


class Watcher:
    """Hears of the status of cells and says nothing; live tables and lines override it."""

    def changed(self, board: StatusBoard, status: CellStatus) -> None:
        """Hear that a cell has another state."""

    def ticked(self, board: StatusBoard) -> None:
        """Hear that time has passed, several times a second."""


UNWATCHED = Watcher()
