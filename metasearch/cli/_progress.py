"""Progress on stderr: bars and a live table of a study on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tqdm import tqdm

from metasearch.pipelines.study.status import CellStatus, State, StatusBoard, Watcher
from metasearch.runs.callbacks import Callback

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

EVERY_SECONDS = 10.0
"""Time between two lines where there is no terminal."""

# One thread of one process draws: no watching thread, which a fork would break, and no lock between processes.
tqdm.monitor_interval = 0
tqdm.set_lock(threading.RLock())


class _Lines:
    """A stream that writes each bar state as a line."""

    def __init__(self) -> None:
        self._last = ""

    def write(self, text: str) -> None:
        """Write a state, unless it is the one before; movements of the cursor are dropped."""
        if (line := text.strip()) not in ("", self._last):
            self._last = line
            _say(line)

    def flush(self) -> None:
        """Do nothing: each line is flushed."""


class ProgressBar(Callback):
    """A progress callback for training and scoring, used as a context manager.

    Time left follows from the pace after the first unit of work, which warms up, and is `?` before.

    Args:
        label: name of the learner or command, shown before every line.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._dev = ""
        self._bars: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for bar in self._bars.values():
            bar.close()

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Show a step."""
        shown = [phase, *(f"{name} {value:.4g}" for name, value in terms.items()), self._dev]
        self._show(self.label, step, total, "steps", " ".join(filter(None, shown)))

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Show a dev score: beside the steps on a terminal, else as a line."""
        self._dev = f"dev {100 * score:.2f}"
        if not sys.stderr.isatty():
            _say(
                f"{self.label}: step {step} {self._dev}{' (before)' if step == 0 else ' (best so far)' if best else ''}"
            )

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Show how many texts are encoded."""
        self._show(f"{self.label}: {what}", done, total, "texts")

    def on_read(self, done: int, total: int) -> None:
        """Show how many documents are read."""
        self._show(f"{self.label}: read", done, total, "documents")

    def on_prepare(self, what: str, done: int, total: int) -> None:
        """Show the progress of a corpus preparation; a total of 0 is unknown."""
        self._show(self.label, done, total, what)

    def _show(self, label: str, done: int, total: int, unit: str, note: str = "") -> None:
        key = "steps" if unit == "steps" else "parts"  # parts are encoded between steps
        bar = self._bars.get(key)
        if bar is not None and ((bar.desc, bar.unit) != (label, f" {unit}") or done < bar.n):
            self._bars.pop(key).close()
            bar = None
        if bar is None:
            bar = self._bars[key] = _bar(label, done, total, unit, note)
        bar.set_postfix_str(note, refresh=False)
        bar.update(done - bar.n)
        if total and done == total:
            self._bars.pop(key).close()


def _bar(label: str, done: int, total: int, unit: str, note: str) -> Any:
    """Return a bar; one of steps shows its first state at once and its last state for good."""
    steps = unit == "steps"
    given = {"desc": label, "initial": done, "total": total or None, "unit": f" {unit}", "miniters": 1, "postfix": note}
    if sys.stderr.isatty():
        return tqdm(**given, file=sys.stderr, dynamic_ncols=True, leave=steps)
    known = "/{total_fmt}{unit} [{elapsed}<{remaining}]" if total else "{unit} [{elapsed}]"
    pace = {"mininterval": EVERY_SECONDS, "delay": 0 if steps else EVERY_SECONDS}
    return tqdm(
        **given, **pace, file=_Lines(), bar_format="{desc}: {n_fmt}" + known + "{postfix}", position=0, leave=True
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


_STOPPING = "stopping, with checkpoints; Ctrl-C again stops at once"
_STYLES: dict[State, str] = {
    "running": "bold",
    "failed": "bold red",
    "stopped": "yellow",
    "queued": "dim",
    "waiting": "dim",
    "done": "green",
}
"""Style of each state; the table has cells in this order, so that a small terminal shows the urgent ones."""


@contextmanager
def watching() -> Iterator[Watcher]:
    """Yield a watcher that shows the jobs of a study."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        try:
            yield LiveTable(live)
        finally:
            live.update("")  # else all rows are drawn at the end, whatever the height


class Lines(Watcher):
    """A line for each change, and one every ten seconds with the progress of the cells."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._stopping = False

    def changed(self, board: StatusBoard, status: CellStatus) -> None:
        """Write the new state of a job."""
        _say(f"crossval: {_format_status(status)} ({counted(board)})")

    def ticked(self, board: StatusBoard) -> None:
        """Write counts and progress at intervals, and once that the study is stopping."""
        if board.stopping and not self._stopping:
            self._stopping = True
            _say(f"crossval: {_STOPPING}")
        if time.monotonic() - self._last >= EVERY_SECONDS:
            self._last = time.monotonic()
            running = ", ".join(f"{status.cell.name} {progress(status)}" for status in board.within("running"))
            _say(f"crossval: {counted(board)}; {running}")


class LiveTable(Watcher):
    """A live table; failures are also written above it, so that they stay."""

    def __init__(self, live: "Live") -> None:
        self._live = live

    def changed(self, board: StatusBoard, status: CellStatus) -> None:
        """Show the new state of a job."""
        if status.state == "failed":
            self._live.console.print(_format_status(status), style=_STYLES[status.state], markup=False)
        self.ticked(board)

    def ticked(self, board: StatusBoard) -> None:
        """Show the progress of all jobs."""
        self._live.update(table(board), refresh=True)


def table(board: StatusBoard) -> "Group":
    """Return the counts, and below them the cells as a table, the running and the failed ones first."""
    from rich.console import Group
    from rich.table import Table

    head = f"{counted(board)}, {tqdm.format_interval(time.monotonic() - board.began)}"
    shown = Table("run", "state", "step", "dev", "time", box=None, pad_edge=False)
    states = list(_STYLES)
    for status in sorted(board.cells.values(), key=lambda each: states.index(each.state)):
        step = progress(status).removeprefix("step ") if status.total or status.texts else ""
        dev = "" if status.dev is None else f"{100 * status.dev:.2f}"
        elapsed = tqdm.format_interval(status.elapsed) if status.elapsed else ""
        shown.add_row(status.cell.name, status.state, step, dev, elapsed, style=_STYLES[status.state])
    return Group(head, *([_STOPPING] if board.stopping else []), shown)


def counted(board: StatusBoard) -> str:
    """Return the number of jobs by state and the time left, such as `3 of 8 done, 1 failed, about 01:05 left`."""
    counts = board.counts()
    named: tuple[State, ...] = ("queued", "failed", "stopped")
    other = "".join(f", {counts[state]} {state}" for state in named if counts[state])
    left = f", about {tqdm.format_interval(board.seconds_left)} left" if board.seconds_left else ""
    return f"{counts['done']} of {len(board.cells)} done{other}{left}"


def progress(status: CellStatus) -> str:
    """Return the progress of a job, such as `step 12/45` or `3000/12000 texts`."""
    if status.texts:
        return status.texts
    stage = f"{status.stage} " if status.stage else ""
    return f"{stage}step {status.step}/{status.total}" if status.total else "begins"


def _format_status(status: CellStatus) -> str:
    """Return name, state and outcome of a job."""
    shown = f"{status.cell.name} {status.state}"
    if status.state == "done":
        dev = "" if status.dev is None else f", dev {100 * status.dev:.2f}"
        return f"{shown} in {tqdm.format_interval(status.seconds)}{dev}"
    return f"{shown}: {status.error}" if status.error and status.state in ("waiting", "failed") else shown
