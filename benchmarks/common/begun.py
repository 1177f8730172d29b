"""The settings that a folder of steps was begun with: with others its finished steps would be of no use."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError


def begin(path: Path, settings: Mapping[str, Any], free: tuple[str, ...] = ()) -> None:
    """Write settings to a new JSON file, or raise `ConfigError` if an existing one differs in any but `free` ones."""
    now = json.loads(json.dumps(settings))
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        for key, value in now.items():
            if key not in free and before.get(key) != value:
                there = f"{path.parent}: begun with {key} {before.get(key)}, not {value}"
                raise ConfigError(f"{there}; choose another folder with -o")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
