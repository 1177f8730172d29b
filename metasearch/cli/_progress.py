"""Shows training and scoring as they go: a bar on a terminal, plain lines elsewhere; always on stderr."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from metasearch.runs.callbacks import Callback

EVERY_SECONDS = 10.0
"""Between two lines where there is no terminal."""


class ProgressBar(Callback):
    """A callback of training and of scoring, to be entered as a context.

    Args:
        label: what is trained, shown before every line.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._dev = ""
        self._began = self._last = time.monotonic()
        self._first_step: int | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._texts: TaskID | None = None
        self._what, self._first_texts, self._texts_began, self._said_texts = "", 0, self._began, False
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.fields[label]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[terms]}"),
                TextColumn("[bold]{task.fields[dev]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Show a step; without a terminal one line in ten seconds."""
        now = time.monotonic()
        if self._first_step is None:
            # The pace is that of the steps after this one: it warms up, and a resumed run does not begin with step 1.
            self._first_step, self._began = step - 1, now
        shown = " ".join(f"{name} {value:.4g}" for name, value in terms.items())
        if self._bar:
            if self._task is None:
                self._task = self._bar.add_task("", label=self.label, terms="", dev=self._dev, total=total)
            self._bar.update(self._task, completed=step, total=total, terms=f"{phase} {shown}", dev=self._dev)
        elif now - self._last >= EVERY_SECONDS or step == total:
            self._last = now
            done = step - self._first_step - 1
            self._line(f"step {step}/{total} {phase} {shown}{_left(now - self._began, done, total - step)}")

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Show a dev score."""
        self._dev = f"dev {100 * score:.2f}"
        # The score before the first step comes before there is a bar, and the first step shows it.
        if self._bar and self._task is not None:
            self._bar.update(self._task, dev=self._dev)
        elif not self._bar:
            mark = " (before)" if step == 0 else " (best so far)" if best else ""
            self._line(f"step {step} {self._dev}{mark}")

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Show how many texts are encoded; without a terminal a line in ten seconds, and after such lines the last."""
        self._count(what, done, total, "texts", f"{what}: {done:,} of {total:,} texts encoded")

    def on_read(self, done: int, total: int) -> None:
        """Show how many documents are read; likewise."""
        self._count("read", done, total, "documents", f"{done:,} of {total:,} documents read")

    def on_prepare(self, what: str, done: int, total: int) -> None:
        """Show what is done of a corpus; likewise, and without a time where it is not known how much there is."""
        self._count(what, done, total, what, f"{done:,} {what}" if not total else f"{done:,} of {total:,} {what}")

    def _count(self, what: str, done: int, total: int, counted: str, line: str) -> None:
        now = time.monotonic()
        if what != self._what or done < self._first_texts:
            # The pace is that of the texts after the first batch: it warms up.
            self._what, self._first_texts, self._texts_began, self._said_texts = what, done, now, False
        if self._bar:
            if self._texts is None:
                self._texts = self._bar.add_task("", label="", terms=counted, dev="", total=total or None)
            self._bar.update(self._texts, label=what, completed=done, total=total or None)
            if done == total:
                self._bar.remove_task(self._texts)
                self._texts = None
        elif now - self._last >= EVERY_SECONDS or (done == total and self._said_texts):
            self._last, self._said_texts = now, True
            left = _left(now - self._texts_began, done - self._first_texts, total - done)
            self._line(f"{line}{left}" if total else line)

    def _line(self, text: str) -> None:
        print(f"{self.label}: {text}", file=sys.stderr, flush=True)  # noqa: T201


def _left(seconds: float, done: int, remaining: int) -> str:
    """Return the estimate of the remaining time, such as `, 1:05 left`; nothing while no unit of work was timed."""
    if remaining and not done:
        return ""
    minutes, rest = divmod(round(remaining * seconds / done) if done else 0, 60)
    return f", {minutes}:{rest:02d} left"
