"""Progress on stderr: bars on a terminal, plain lines elsewhere."""

import sys
import threading
from typing import Any, Self

from tqdm import tqdm

from metasearch.runs.callbacks import Callback

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

    def __exit__(self, *error: object) -> None:
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
            note = " (before)" if step == 0 else " (best so far)" if best else ""
            _say(f"{self.label}: step {step} {self._dev}{note}")

    def on_encode(self, what: str, done: int, total: int) -> None:
        """Show how many texts are encoded."""
        self._show(f"{self.label}: {what}", done, total, "texts")

    def on_count(self, what: str, done: int, total: int) -> None:
        """Show the progress of other work; a total of 0 is unknown."""
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
