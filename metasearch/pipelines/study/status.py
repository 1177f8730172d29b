"""The status of the cells of a study."""

import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Literal

from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.study.plan import Cell
from metasearch.runs.log import last_line, read_latest

_TEXTS = re.compile(r"\d+/\d+ texts")

State = Literal["waiting", "queued", "running", "done", "failed", "stopped"]


@dataclass(eq=False)
class CellStatus:
    """The progress of a cell.

    Attributes:
        state: `queued` from its submission until its log has a new attempt.
        total: number of optimizer steps at most; 0 while it is unknown.
        texts: number of encoded texts, such as `3000/12000 texts`, while the cell is scored.
        began: start of this attempt, in seconds of `time.monotonic`.
        seconds: duration of this attempt, once it has ended.
        logged: size of its log when it was submitted.
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
    logged: int = 0

    def follow(self, study: StudyFolder) -> None:
        """Read the progress of a running cell from its run folder and its log."""
        folder, said = study.at(self.cell.name), study.log(self.cell.name)
        self._read_steps(folder)
        steps, self.texts = folder / "log.jsonl", ""
        # Texts are encoded now where the process has written since the last step.
        if said.is_file() and (not steps.is_file() or said.stat().st_mtime > steps.stat().st_mtime):
            found = _TEXTS.search(last_line(said))
            self.texts = found[0] if found else ""

    def _read_steps(self, folder: Path) -> None:
        # A distillation logs in the folders of its stages: the newest log is that of the running stage.
        logs = [path for path in (folder / "log.jsonl", *folder.glob("*/log.jsonl")) if path.is_file()]
        if not logs:
            return
        log = max(logs, key=lambda path: path.stat().st_mtime)
        self.stage = "" if log.parent == folder else log.parent.name.partition("-")[2]
        # Steps have the total and dev scores the score: what an event lacks stays.
        for event in read_latest(log):
            self.step = event["step"]
            self.total = event.get("total", self.total)
            self.dev = event.get("dev", self.dev)

    @property
    def elapsed(self) -> float:
        """Seconds of this attempt."""
        return time.monotonic() - self.began if self.state == "running" else self.seconds


@dataclass
class StatusBoard:
    """All cells of a study by name, in the order in which they begin; `stopping` if they were asked to stop."""

    cells: dict[str, CellStatus]
    stopping: bool = False

    @classmethod
    def of(cls, cells: Iterable[Cell], done: Iterable[str]) -> "StatusBoard":
        """Return the cells, the finished ones marked as such."""
        known = set(done)
        return cls({cell.name: CellStatus(cell, "done" if cell.name in known else "waiting") for cell in cells})

    def counts(self) -> Counter[State]:
        """Return the number of cells in each state."""
        return Counter(status.state for status in self.cells.values())

    def within(self, *states: State) -> list[CellStatus]:
        """Return the cells in some states."""
        return [status for status in self.cells.values() if status.state in states]

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all cells are done, by the mean time of their arm or kind; None while that is unknown."""
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
        return left / max(1, len(self.within("queued", "running")))


class Watcher:
    """Receives the status of cells and shows nothing; `StudyProgress` overrides it."""

    def changed(self, board: StatusBoard, status: CellStatus) -> None:
        """Receive the new state of a cell."""

    def ticked(self, board: StatusBoard) -> None:
        """Receive a tick of the clock, several times a second."""


UNWATCHED = Watcher()
