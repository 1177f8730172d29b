"""Writes the scores of a results file and reads them back, every line checked.

Scores of one evaluation have most facts in common, such as task, versions and weights. A line `{"facts": {...}}` holds
them once for the rows after it, up to the next such line.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from metasearch.errors import DataError
from metasearch.io import read_bytes

Row = dict[str, Any]
"""A score, as in `results.jsonl`."""

MEAN = "mean"
"""Stands for the language in the mean over languages."""

STAGE = "dev"
"""Stands for the task in the score of a distillation's stage on its own held-out data."""

_REQUIRED: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("task", "learner", "encoder", "split", "measure", "pool", "language", "candidates", "data"), str),
    "value": (int, float),
    "fold": int,
    "seed": int,
    "versions": dict,
}


_FACTS = "facts"
"""Key of a line with facts for the rows after it."""


def format_rows(rows: Iterable[Row]) -> str:
    """Return the lines for related rows, with their shared facts in one line."""
    rows = list(rows)
    first = rows[0] if rows[1:] else {}
    shared = {
        key: first[key]
        for key in first
        if key != "value" and all(key in row and row[key] == first[key] for row in rows)
    }
    own = [{key: value for key, value in row.items() if key not in shared} for row in rows]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in ({_FACTS: shared}, *own)) if rows else ""


def read_rows(path: Path, complete: bool = False) -> list[dict[str, Any]]:
    """Return the rows in a results file, each with all its facts; `complete` checks every score of a finished run."""
    rows = _numbered(path)
    for number, row in rows.items():
        if complete and row.get("task") != STAGE:
            _require_score(row, f"{path}:{number}")
    return list(rows.values())


def _numbered(path: Path) -> dict[int, dict[str, Any]]:
    try:
        # Not `splitlines`, which also splits at U+2028 and the like; JSON may hold them.
        lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise DataError(f"{path}: missing, though the run is finished") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: damaged, or not a results file: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    rows: dict[int, dict[str, Any]] = {}
    facts: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: not JSON: {error}. The file is truncated or damaged") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: not a score of metasearch: {line[:40]}")
        if row.keys() == {_FACTS} and isinstance(row[_FACTS], dict):
            facts = row[_FACTS]
        else:
            rows[number] = {**facts, **row}
    return rows


def _require_score(row: Row, where: str) -> None:
    lacking = [key for key in _REQUIRED if key not in row]
    if lacking:
        raise DataError(f"{where}: not a score of metasearch: it has no {', '.join(lacking)}")
    for key, kind in _REQUIRED.items():
        # In Python True is an int.
        if not isinstance(row[key], kind) or isinstance(row[key], bool):
            raise DataError(f"{where}: {key}: {json.dumps(row[key])} is no {_NOUNS[kind]}")
    # Python's JSON reads NaN and Infinity as numbers.
    if not math.isfinite(row["value"]):
        raise DataError(f"{where}: value: {row['value']} is not finite")


_NOUNS = {str: "text", (int, float): "number", int: "whole number", dict: "mapping"}
