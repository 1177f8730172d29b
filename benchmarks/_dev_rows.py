"""The rows of `small_studies.py`: read again, chosen by encoder, and listed."""

import json
from pathlib import Path
from typing import Any

from metasearch.runs.markdown import markdown

Row = dict[str, Any]


def all_rows(path: Path) -> list[Row]:
    """Return the rows of a results file, none where it is not there yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def of_encoder(rows: list[Row], task: str, encoder: str, fingerprint: str | None = None) -> list[Row]:
    """Return the rows of a task with an encoder; other encoders may have had its name, such as `mini`, before.

    Args:
        rows: to choose from.
        task: of the rows.
        encoder: as it was named.
        fingerprint: of its weights and tokens; by default that of the last row with this task and name.
    """
    own = [row for row in rows if (row["task"], row["encoder"]) == (task, encoder)]
    wanted = fingerprint or (own[-1]["fingerprint"] if own else None)
    return [row for row in own if row["fingerprint"] == wanted]


def table(rows: list[Row]) -> str:
    """Return a table of points, the best first, scores on dev times 100."""
    ordered = sorted(rows, key=lambda row: (row["learner"], row["mode"], -(row["best"] if row["best"] else -1.0)))
    lines = [
        [
            f"{row['learner']} ({row['mode']})", row["axis"], ", ".join(row["changes"]) or "none",
            shown(row["zero_shot"]), shown(row["best"]), _gain(row), f"{row['best_step'] or ''}",
            f"{row['max_steps']}", f"{row['fold']}", f"{row['seconds']:.0f}", row["error"] or "",
        ]
        for row in ordered
    ]  # fmt: skip
    heads = ["learner", "axis", "changes", "zero-shot", "best", "gain", "at step", "of", "fold", "s", "error"]
    return markdown(heads, lines, left=3)


def _gain(row: Row) -> str:
    return f"{100 * (row['best'] - row['zero_shot']):+.2f}" if row["best"] is not None else ""


def shown(value: float | None) -> str:
    """Return a score times 100, empty where there is none."""
    return "" if value is None else f"{100 * value:.2f}"
