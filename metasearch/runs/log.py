"""The log of a run, `log.jsonl`: a line an outer step or dev score."""

import json
from pathlib import Path
from typing import Any


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log in their order, each with its `step`; what a crash has cut off is left out."""
    found = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("step"), int):
            found.append(event)
    return found
