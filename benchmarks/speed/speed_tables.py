"""The tables of time and memory, in Markdown, from rows of `results/`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row, latest_rows
from metasearch.runs.markdown import markdown


def comparison_table(rows: Sequence[Row]) -> str:
    """Return each peer of each case: how many times as long it takes as ours, and our memory over its."""
    by_key = {_metric(row): row for row in rows}
    lines = []
    for row in by_key.values():
        name = row["metric"].removeprefix("times ")
        if name == row["metric"]:
            continue
        memory = by_key.get((row["case"], row["shape"], f"memory over {name}"))
        over = "" if memory is None else f"{memory['value']:.2f}"
        lines.append([row["case"], row["shape"], name, _spread(row), over, f"{row['rounds']}"])
    heads = ["case", "shape", "peer", "times as long as ours", "our memory over its", "rounds"]
    return markdown(heads, lines, left=3)


CHECKPOINTING_WAYS = ("fast", "checkpointing", "texts", "bf16", "bf16 checkpointing")


def checkpointing_table(rows: Sequence[Row]) -> str:
    """Return of each encoder, set and precision memory and processor time of a step, by what is computed again."""
    latest = latest_rows(rows, lambda row: (row["scale"], row["shape"], row["k"], row["way"]))
    shapes = [row["shape"] for row in latest]
    latest.sort(key=lambda row: (shapes.index(row["shape"]), row["k"], CHECKPOINTING_WAYS.index(row["way"])))
    lines = []
    for row in latest:
        kept = next(one for one in latest if (one["shape"], one["k"], one["way"]) == (row["shape"], row["k"], "fast"))
        again = "layers" if "checkpointing" in row["way"] else "texts" if row["way"] == "texts" else "nothing"
        sizes = [f"{row[f'{name}_mib']:.0f}" for name in ("tensors", "process")]
        ratios = [f"{row['tensors_mib'] / kept['tensors_mib']:.2f}", f"{row['cpu']:.2f}"]
        ways = [str(row["k"]), again, "bf16" if row["way"].startswith("bf16") else "fp32"]
        lines.append([row["shape"], *ways, *sizes, *ratios])
    heads = ["tensors, MiB", "process, MiB", "tensors", "CPU time"]
    return markdown(
        ["encoder", "k", "recomputed", "precision", *heads], lines, (True, False, True, True, *[False] * len(heads))
    )


def _metric(row: Row) -> tuple[str, str, str]:
    return row["case"], row["shape"], row["metric"]


def _spread(row: Row) -> str:
    middle = f"{row['value']:.3g}"
    return middle if row["low"] == row["high"] else f"{middle} ({row['low']:.3g} to {row['high']:.3g})"
