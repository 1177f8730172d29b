"""The tables of the small studies, in Markdown, from rows of `results/small_studies.jsonl`; scores are of dev."""

from collections.abc import Sequence

from benchmarks.common.rows import Row
from metasearch.runs.markdown import markdown


def of_encoder(rows: list[Row], task: str, encoder: str, fingerprint: str | None = None) -> list[Row]:
    """Return the rows of a task with an encoder; by default with the fingerprint of the last row with this name."""
    own = [row for row in rows if (row["task"], row["encoder"]) == (task, encoder)]
    wanted = fingerprint or (own[-1]["fingerprint"] if own else None)
    return [row for row in own if row["fingerprint"] == wanted]


def losses(row: Row) -> list[str]:
    """Return the losses that a point names, one of each kind of examples; none where it has the task's own."""
    named: str | list[str] = row["recipe"]["loss"].get("name") or []
    return [named] if isinstance(named, str) else named


def points_table(rows: list[Row]) -> str:
    """Return a table of points, the best first, scores on dev times 100."""
    ordered = sorted(rows, key=lambda row: (row["learner"], row["mode"], -(row["best"] if row["best"] else -1.0)))
    lines = [
        [
            f"{row['learner']} ({row['mode']})", row["axis"], ", ".join(row["changes"]) or "none",
            score(row["zero_shot"]), score(row["best"]), _gain(row), f"{row['best_step'] or ''}",
            f"{row['max_steps']}", f"{row['fold']}", f"{row['seconds']:.0f}", row["error"] or "",
        ]
        for row in ordered
    ]  # fmt: skip
    heads = ["learner", "axis", "changes", "zero-shot", "best", "gain", "at step", "of", "fold", "s", "error"]
    return markdown(heads, lines, left=3)


def _gain(row: Row) -> str:
    return f"{100 * (row['best'] - row['zero_shot']):+.2f}" if row["best"] is not None else ""


def score(value: float | None) -> str:
    """Return a score times 100, empty where there is none."""
    return "" if value is None else f"{100 * value:.2f}"


def rates_table(rows: Sequence[Row]) -> str:
    """Return a line of each learner, margin and outer rate that were crossed: the score after each evaluation."""
    crossed = [row for row in rows if row["axis"] in ("base", "loss.margin × outer.lr")]
    ordered = sorted(crossed, key=lambda row: (row["learner"], -_margin(row), _rate(row)))
    lines = [
        [f"{row['learner']} ({row['mode']})", f"{_margin(row):.1f}", f"{_rate(row):.0e}", *_curve(row)]
        for row in ordered
    ]
    return markdown([_corner(ordered), "margin", "outer rate", *_heads(ordered)], lines)


def changes_table(rows: Sequence[Row]) -> str:
    """Return a line of each single change to the base recipe, the base first, with the seconds that a point took."""
    single = [row for row in rows if len(row["changes"]) < 2]
    lines = [[", ".join(row["changes"]) or "base", *_curve(row), f"{row['seconds']:.0f}"] for row in single]
    return markdown([_corner(single), *_heads(single), "s"], lines)


def _margin(row: Row) -> float:
    return float(row["recipe"]["loss"]["margin"])


def _rate(row: Row) -> float:
    return float(row["recipe"]["outer"]["lr"])


def _corner(rows: Sequence[Row]) -> str:
    return f"{rows[0]['measure']} (dev), zero-shot {score(rows[0]['zero_shot'])}"


def _heads(rows: Sequence[Row]) -> list[str]:
    return [f"after {step} steps" for step, _ in rows[0]["curve"] if step]


def _curve(row: Row) -> list[str]:
    return [score(value) for step, value in row["curve"] if step]
