"""The table of an index, in Markdown, from rows of `results/`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row
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


def _value(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.2f}" if metric.startswith("mAP") else f"{value:.4f}"
