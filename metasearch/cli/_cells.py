"""Shows the cells of a study on stderr: a live table on a terminal, plain lines elsewhere."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from metasearch.jobs.crossval.board import Board, Place, State, Watcher

_EVERY_SECONDS = 60.0
_STOPPING = "stopping, with checkpoints; Ctrl-C again kills what is at work"
_MARGIN = 5
"""Lines of a terminal that the rows of cells leave free: head, counts and a little room."""
_STYLES: dict[State, str] = {
    "waiting": "dim",
    "running": "bold",
    "done": "green",
    "failed": "bold red",
    "skipped": "yellow",
    "stopped": "yellow",
}
_URGENT: tuple[State, ...] = ("running", "failed", "stopped", "skipped", "waiting", "done")


@contextmanager
def watching() -> Iterator[Watcher]:
    """Yield what shows the cells."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield Shown(live)


class Lines:
    """One line for each change, and one a minute with counts."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._stopping = False

    def changed(self, board: Board, place: Place) -> None:
        """Show the new state of a cell."""
        self._line(f"{place.cell.name} {place.state}{_said(place)} ({counted(board)})")

    def ticked(self, board: Board) -> None:
        """Show counts once a minute, and once that cells are waited for."""
        if board.stopping and not self._stopping:
            self._stopping = True
            self._line(_STOPPING)
        now = time.monotonic()
        if now - self._last >= _EVERY_SECONDS:
            self._last = now
            running = ", ".join(f"{place.cell.name} {progress(place)}" for place in board.within("running"))
            self._line(f"{counted(board)}; {running}")

    def _line(self, text: str) -> None:
        print(f"crossval: {text}", file=sys.stderr, flush=True)  # noqa: T201


class Shown:
    """A live table; what failed is also written above it, so that it stays.

    Args:
        live: shows it.
    """

    def __init__(self, live: Live) -> None:
        self._live = live

    def changed(self, board: Board, place: Place) -> None:
        """Show the new state of a cell."""
        if place.state in ("failed", "skipped"):
            with _whole():
                self._live.console.print(Text(f"{place.cell.name} {place.state}{_said(place)}", _STYLES[place.state]))
        self.ticked(board)

    def ticked(self, board: Board) -> None:
        """Show how far the cells are."""
        rows = max(1, self._live.console.height - _MARGIN)
        with _whole():
            self._live.update(table(board, rows), refresh=True)


@contextmanager
def _whole() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM come after what is drawn: a table drawn by half is never cleared away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda each, _: came.append(each)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def table(board: Board, rows: int) -> Group:
    """Return the cells as a table of so many rows at most, and counts below it.

    Where they do not all fit, those that are at work and those that failed stand before those that wait or are done.
    """
    places = list(board.places.values())
    if len(places) > rows:
        urgent = sorted(places, key=lambda place: _URGENT.index(place.state))[:rows]
        shown = {place.cell.name for place in urgent}
        places = [place for place in places if place.cell.name in shown]
    found = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in (("cell", "left"), ("state", "left"), ("step", "right"), ("dev", "right"), ("time", "right")):
        found.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for place in places:
        dev = "" if place.dev is None else f"{100 * place.dev:.2f}"
        took = clock(place.elapsed) if place.elapsed else ""
        step = progress(place).removeprefix("step ") if place.total else ""
        found.add_row(Text(place.cell.name), Text(place.state, _STYLES[place.state]), Text(step), dev, took)
    hidden = len(board.places) - len(places)
    more = f", {hidden} not shown" if hidden else ""
    count = Text(f"{counted(board)}{more}, {clock(time.monotonic() - board.began)}")
    return Group(found, count, *([Text(_STOPPING)] if board.stopping else []))


def counted(board: Board) -> str:
    """Return how many cells are in which state, such as `3 of 8 done, 1 failed`."""
    counts = board.counts()
    other = "".join(f", {counts[state]} {state}" for state in ("failed", "skipped", "stopped") if counts[state])
    return f"{counts['done']} of {len(board.places)} done{other}"


def progress(place: Place) -> str:
    """Return how far a cell is, such as `step 12/45`."""
    stage = f"{place.stage} " if place.stage else ""
    return f"{stage}step {place.step}/{place.total}" if place.total else "begins"


def clock(seconds: float) -> str:
    """Return seconds as minutes or hours, such as `1:05` or `2:03:10`."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def _said(place: Place) -> str:
    """Return what there is to say of a cell's new state."""
    if place.state == "done":
        dev = "" if place.dev is None else f", dev {100 * place.dev:.2f}"
        return f" in {clock(place.seconds)}{dev}"
    return f": {place.error}" if place.error and place.state in ("failed", "skipped") else ""
