"""The table of prepared corpora, in Markdown, from rows of `results/corpora.jsonl`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row, latest_rows
from metasearch.runs.markdown import markdown

_NAMES = {
    ("prepare", "pairs a second"): "prepare, {way}: pairs a second",
    ("prepare", "processor s a million"): "prepare, {way}: processor seconds for a million pairs",
    ("prepare", "largest process, MB"): "prepare, {way}: largest process, MB",
    ("size", "bytes a pair"): "bytes a pair, {way}",
    ("resident", "MB"): "reading it: memory {way}, MB",
    ("read", "processor s before"): "before the first batch, {way}: processor seconds",
    ("read", "pairs a second"): "batches with tokens, {way}: pairs a second",
}


def corpora_table(rows: Sequence[Row]) -> str:
    """Return a line for each figure and a column for each number of pairs."""
    latest = latest_rows(rows, lambda row: (row["pairs"], row["case"], row["way"], row["metric"]))
    columns = sorted({row["pairs"] for row in latest})
    found = {(row["case"], row["metric"], row["way"], row["pairs"]): row["value"] for row in latest}
    lines = []
    for case, metric, way in dict.fromkeys(key[:3] for key in found):
        cells = [found.get((case, metric, way, pairs)) for pairs in columns]
        shown = ["" if cell is None else f"{cell:,.0f}" if cell >= 10 else f"{cell:.1f}" for cell in cells]
        lines.append([_NAMES[case, metric].format(way=way), *shown])
    return markdown(["", *(f"{pairs:,} pairs" for pairs in columns)], lines, left=1)
