"""Keeps Ctrl-C and SIGTERM until the loop looks at them between steps."""

import logging
import signal
import threading
from types import FrameType
from typing import Self

from metasearch import signals

log = logging.getLogger(__name__)


class Interrupt:
    """While entered, the first signal sets `number` to its own; a second one raises `KeyboardInterrupt` at once."""

    _signals = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.number = 0
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Self:
        signals.note(None)
        # Python sets signal handlers in the main thread alone, and raises ValueError elsewhere.
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._on_signal) for number in self._signals}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def agreed(self, number: int) -> bool:
        """Take the signal that any process of the run got, or 0, for one's own; return whether there is one."""
        if number:
            signals.note(number)
        return bool(number)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        signals.note(number)
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        log.warning("stopping after this step; a second time stops at once")
