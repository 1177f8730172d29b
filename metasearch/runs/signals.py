"""Ctrl-C (SIGINT) and SIGTERM: both raise `KeyboardInterrupt`; a training finishes its step first."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from metasearch.errors import Interrupted, Terminated

_NUMBERS = (signal.SIGINT, signal.SIGTERM)

log = logging.getLogger(__name__)


class _State:
    """Python runs signal handlers in the main thread alone, so a process has one state."""

    received = 0


def listen() -> None:
    """Let both signals raise `KeyboardInterrupt`; one that is ignored, as in a background job, stays ignored."""
    for number in _NUMBERS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def note(number: int) -> None:
    """Remember the signal that stops this command; 0 forgets it."""
    _State.received = number


def received() -> int:
    """Return the signal that stops this command, or 0."""
    return _State.received


def interrupted(message: str) -> Interrupted:
    """Return the error for a stopped command, by signal."""
    return (Terminated if received() == signal.SIGTERM else Interrupted)(message)


@contextmanager
def deferred() -> Iterator[None]:
    """While entered, let the first signal only be noted: see `received`. A second one raises `KeyboardInterrupt`."""
    note(0)
    # Python sets handlers in the main thread alone.
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, _defer) for number in _NUMBERS} if main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    note(number)
    raise KeyboardInterrupt


def _defer(number: int, frame: FrameType | None) -> None:
    if received():
        _interrupt(number, frame)
    note(number)
    log.warning("stopping after this step; a second time stops at once")
