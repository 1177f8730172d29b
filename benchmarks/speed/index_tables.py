"""The tables of an index, in Markdown, from rows of `results/`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row, latest_rows
from metasearch.runs.markdown import markdown


def recall_table(rows: Sequence[Row]) -> str:
    """Return recall beside unrounded vectors, and mAP; a way to search a line, two columns for a task and encoder."""
    found = {(row["way"], row["task"], row["encoder"], row["metric"]): row["value"] for row in rows}
    columns = list(dict.fromkeys((row["task"], row["encoder"], row["metric"]) for row in rows))
    lines = [
        [way, *(_value(column[-1], found.get((way, *column))) for column in columns)]
        for way in dict.fromkeys(row["way"] for row in rows if row["metric"].startswith("mAP"))
    ]
    return markdown(["", *(f"{metric}, {encoder} on {task}" for task, encoder, metric in columns)], lines, left=1)


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
