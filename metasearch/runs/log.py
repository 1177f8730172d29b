"""The log of a run, `log.jsonl`: a line an outer step or dev score."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_TAIL = 2**14
"""Bytes at the end of a log that tell how far its run is: some dozens of events."""


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log in their order, each with its `step`; what a crash has cut off is left out."""
    return list(_events(path.read_bytes().splitlines() if path.is_file() else ()))


def read_latest(path: Path) -> list[dict[str, Any]]:
    """Return the latest events of a log that another process may be writing."""
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL)
        file.seek(start)
        lines = file.read().splitlines()
    # Read from the middle of a file, the first line is cut off.
    return list(_events(lines[1:] if start else lines))


def _events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            event = json.loads(line)
        # Half a line that is just being written, or that a crash left; a character cut in two is a ValueError, too.
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("step"), int):
            yield event
