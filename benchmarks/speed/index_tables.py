"""The tables of an index, in Markdown, from rows of `results/`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row, latest_rows
from metasearch.runs.markdown import markdown


def recall_table(rows: Sequence[Row]) -> str:
    """Return recall beside unrounded vectors, and mAP with and without words; an encoder and a task a line."""
    by_run: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in rows:
        by_run.setdefault((row["task"], row["encoder"]), {})[row["metric"], row["way"]] = row["value"]
    columns = list(dict.fromkeys((row["metric"], row["way"]) for row in rows))
    lines = []
    for (task, encoder), found in by_run.items():
        lines.append([task, encoder, *(_value(metric, found.get((metric, way))) for metric, way in columns)])
    return markdown(["task", "encoder", *(f"{metric}, {way}" for metric, way in columns)], lines, left=2)


def size_table(rows: Sequence[Row]) -> str:
    """Return what an index takes, by kind of storage."""
    found = {(row["metric"], row["way"]): row["value"] for row in rows if row["case"] in ("size", "recall")}
    metrics, ways = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    lines = [
        [metric, *(f"{found[metric, way]}" if (metric, way) in found else "" for way in ways)] for metric in metrics
    ]
    return markdown([_what(rows), *ways], lines, left=1)


def time_table(rows: Sequence[Row]) -> str:
    """Return milliseconds of a search, median (lowest to highest), and how many times that of `int8`."""
    timed = latest_rows([row for row in rows if row["case"] == "search"], lambda row: (row["way"], row["queries"]))
    counts = sorted({row["queries"] for row in timed})
    by_key = {(row["way"], row["queries"]): row for row in timed}
    heads = [head for count in counts for head in (f"{count} at once, ms", "times int8")]
    lines = []
    for way in dict.fromkeys(row["way"] for row in timed):
        cells = [by_key[way, count] for count in counts]
        lines.append([way, *(text for row in cells for text in (_spread(row), f"{row['ratio']:.2f}"))])
    return markdown([_what(rows), *heads], lines, left=1)


def _what(rows: Sequence[Row]) -> str:
    last = rows[-1]
    return f"{last['passages']:,} × {last['dimension']}"


def _value(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.2f}" if metric.startswith("mAP") else f"{value:.4f}"


def _spread(row: Row) -> str:
    return f"{row['value']:.0f} ({row['low']:.0f} to {row['high']:.0f})"
