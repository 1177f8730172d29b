"""Shows the cells of a study on stderr: a live table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from metasearch.cli import _progress
from metasearch.pipelines.study.status import CellStatus, State, StatusBoard, Watcher

_STOPPING = "stopping, with checkpoints; Ctrl-C again kills what is at work"
_MARGIN = 5
"""Lines of a terminal that the rows of cells leave free: head, counts and a little room."""
_STYLES: dict[State, str] = {
    "waiting": "dim",
    "queued": "dim",
    "running": "bold",
    "done": "green",
    "failed": "bold red",
    "skipped": "yellow",
    "stopped": "yellow",
}
_URGENT: tuple[State, ...] = ("running", "failed", "stopped", "skipped", "queued", "waiting", "done")


@contextmanager
def watching() -> Iterator[Watcher]:
    """Yield what shows the cells."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveTable(live)


class Lines(Watcher):
    """One line for each change, and one every ten seconds that says how far the cells are."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._stopping = False

    def changed(self, board: StatusBoard, status: CellStatus) -> None:
        """Show the new state of a cell."""
        self._line(f"{status.cell.name} {status.state}{_format_status(status)} ({counted(board)})")

    def ticked(self, board: StatusBoard) -> None:
        """Show counts and how far cells are at intervals, and once that cells are waited for."""
        if board.stopping and not self._stopping:
            self._stopping = True
            self._line(_STOPPING)
        now = time.monotonic()
        if now - self._last >= _progress.EVERY_SECONDS:
            self._last = now
            running = ", ".join(f"{status.cell.name} {progress(status)}" for status in board.within("running"))
            self._line(f"{counted(board)}; {running}")

    def _line(self, text: str) -> None:
        print(f"crossval: {text}", file=sys.stderr, flush=True)  # noqa: T201


class LiveTable(Watcher):
    """A live table; what failed is also written above it, so that it stays."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def changed(self, board: StatusBoard, status: CellStatus) -> None:
        """Show the new state of a cell."""
        if status.state in ("failed", "skipped"):
            self._live.console.print(
                Text(f"{status.cell.name} {status.state}{_format_status(status)}", _STYLES[status.state])
            )
        self.ticked(board)

    def ticked(self, board: StatusBoard) -> None:
        """Show how far the cells are."""
        rows = max(1, self._live.console.height - _MARGIN)
        self._live.update(table(board, rows), refresh=True)


def table(board: StatusBoard, rows: int) -> Group:
    """Return the cells as a table of so many rows at most, and counts below it.

    Where they do not all fit, those that are at work and those that failed stand before those that wait or are done.
    """
    cells = list(board.cells.values())
    if len(cells) > rows:
        urgent = sorted(cells, key=lambda status: _URGENT.index(status.state))[:rows]
        # Those that are shown keep the order of the study.
        cells = [status for status in cells if status in urgent]
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in (("cell", "left"), ("state", "left"), ("step", "right"), ("dev", "right"), ("time", "right")):
        shown.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for status in cells:
        dev = "" if status.dev is None else f"{100 * status.dev:.2f}"
        took = clock(status.elapsed) if status.elapsed else ""
        step = progress(status).removeprefix("step ") if status.total or status.texts else ""
        shown.add_row(Text(status.cell.name), Text(status.state, _STYLES[status.state]), Text(step), dev, took)
    hidden = len(board.cells) - len(cells)
    more = f", {hidden} not shown" if hidden else ""
    count = Text(f"{counted(board)}{more}, {clock(time.monotonic() - board.began)}")
    return Group(shown, count, *([Text(_STOPPING)] if board.stopping else []))


def counted(board: StatusBoard) -> str:
    """Return how many cells are in which state and the time left, such as `3 of 8 done, 1 failed, about 1:05 left`."""
    counts = board.counts()
    named: tuple[State, ...] = ("queued", "failed", "skipped", "stopped")
    other = "".join(f", {counts[state]} {state}" for state in named if counts[state])
    seconds = board.seconds_left
    left = f", about {clock(seconds)} left" if seconds else ""
    return f"{counts['done']} of {len(board.cells)} done{other}{left}"


def progress(status: CellStatus) -> str:
    """Return how far a cell is, such as `step 12/45` or `3,000 of 12,000 texts`."""
    if status.texts:
        return status.texts
    stage = f"{status.stage} " if status.stage else ""
    return f"{stage}step {status.step}/{status.total}" if status.total else "begins"


def clock(seconds: float) -> str:
    """Return seconds as minutes or hours, such as `1:05` or `2:03:10`."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def _format_status(status: CellStatus) -> str:
    """Return what there is to say of a cell's new state."""
    if status.state == "done":
        dev = "" if status.dev is None else f", dev {100 * status.dev:.2f}"
        return f" in {clock(status.seconds)}{dev}"
    return f": {status.error}" if status.error and status.state in ("waiting", "failed", "skipped") else ""
