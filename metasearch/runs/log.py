"""The run log, `log.jsonl`: one line per outer step or dev score."""

import json
import logging
import os
from pathlib import Path
from typing import Any

from metasearch.errors import RunFolderError
from metasearch.io import read_bytes

_TAIL = 2**12
"""Bytes at the end of a text that hold its last line."""

log = logging.getLogger(__name__)


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log in order; skip an unfinished last line, and other damaged lines with a warning."""
    try:
        lines = read_bytes(path).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from None
    events = [_event(line) for line in lines]
    if damaged := [number for number, event in enumerate(events[:-1], 1) if event is None]:
        # Not as arguments: of one message with other arguments, the command line would show the first file alone.
        log.warning(f"{path}: skipped {len(damaged)} damaged lines, the first is line {damaged[0]}")
    return [event for event in events if event is not None]


def last_line(path: Path) -> str:
    """Return the last line of a growing text, or empty."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        lines = file.read().splitlines()
    return lines[-1].decode(errors="replace") if lines else ""


def _event(line: bytes) -> dict[str, Any] | None:
    """Return a line's event; None if damaged."""
    try:
        event = json.loads(line)
    # Half a line that is just being written, or that a crash left; a character cut in two is a ValueError, too.
    except (ValueError, RecursionError):
        return None
    # In Python True is an int.
    return event if isinstance(event, dict) and type(event.get("step")) is int else None
