"""Ctrl-C (SIGINT) and SIGTERM, from the first moment of a command to its last.

An exception does not do while modules are imported: those of numpy, torch and others turn `KeyboardInterrupt` into
another error or drop it. So a command that has nothing to end properly leaves at once, without one, and says in a line
what there is. Where there is something to end, such as a file that is half written, the exception comes as soon as the
import is done.

This file is imported before anything else of a command, and is quick to import: until then a signal is Python's.
"""

import _signal  # type: ignore[import-not-found]  # `signal` takes far longer to import, for names of these numbers
import _thread
import os
import time
from types import FrameType

_NUMBERS = (_signal.SIGINT, _signal.SIGTERM)
_IMPORTS = "<frozen importlib._bootstrap>"
_AGAIN_SECONDS = 0.05
NOTHING = "; nothing was written"


class _State:
    """What this process knows; signals come to its main thread alone, so there is one state."""

    listening = False
    main = 0
    raises = False
    work = 0
    caught: int | None = None
    sent_again = False
    reached = NOTHING
    unfinished = False


_state = _State()


def listen() -> None:
    """Take both signals from now on; one that is ignored, as Ctrl-C of a job in the background, stays so."""
    _state.listening, _state.main = True, _thread.get_ident()
    for number in _NUMBERS:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, _on_signal)


def note(number: int | None) -> None:
    """Remember which signal stops this process; None forgets it."""
    _state.caught = number


def caught() -> int | None:
    """Return the signal that stops this process; None where none came."""
    return _state.caught


def terminated() -> bool:
    """Return whether it is SIGTERM, as of a scheduler, that stops this process."""
    return bool(_state.caught == _signal.SIGTERM)


def reached() -> str:
    """Return what there is when the command is stopped now, to follow the word `stopped` in its message."""
    return _state.reached


def keep(text: str) -> None:
    """Say from now on what there is when the command is stopped, such as `. Go on with: metasearch resume runs/one`."""
    _state.reached = text


def abandon() -> None:
    """Say that something is being done in this process that its end is not to wait for."""
    _state.unfinished = True


def abandoned() -> bool:
    """Return whether something was left to itself (`abandon`): Python's own end is not safe beside it."""
    return _state.unfinished


class Raised:
    """While a command is in this, a signal is a `KeyboardInterrupt` that it catches; after it, the command is over."""

    def __enter__(self) -> None:
        # A process may run several commands, one after another.
        _state.caught, _state.reached, _state.raises = None, NOTHING, True

    def __exit__(self, *exception: object) -> None:
        _state.raises = False
        # What is done stays done, with its own exit code, when a signal comes while Python shuts down.
        for number in _NUMBERS if _state.listening else ():
            _signal.signal(number, _signal.SIG_IGN)


class AtWork:
    """While this is entered there is something to end properly: files, other processes, or a terminal."""

    def __enter__(self) -> None:
        _state.work += 1

    def __exit__(self, *exception: object) -> None:
        _state.work -= 1


def _on_signal(number: int, frame: FrameType | None) -> None:
    again = _state.caught is not None and not _state.sent_again
    _state.caught, _state.sent_again = _state.caught or number, False
    importing = _importing(frame)
    if not _state.raises or (importing and again) or (not _state.work and (importing or again)):
        _leave()
    if not importing:
        raise KeyboardInterrupt
    _thread.start_new_thread(_send_again, (number,))


def _send_again(number: int) -> None:
    time.sleep(_AGAIN_SECONDS)
    _state.sent_again = True
    # To the main thread, so that what it waits for by now is interrupted, too.
    if hasattr(_signal, "pthread_kill"):
        _signal.pthread_kill(_state.main, number)
    else:
        _thread.interrupt_main(number)  # type: ignore[arg-type]  # it takes any number


def _importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported, in this frame or in one that called it."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False


def _leave() -> None:
    """End this process now, with one line."""
    try:
        os.write(2, f"metasearch: error: stopped{_state.reached}\n".encode())
    finally:
        os._exit(128 + (_state.caught or _signal.SIGINT))
