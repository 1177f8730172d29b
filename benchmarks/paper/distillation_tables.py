"""The table of the distillations, in Markdown, from rows of `results/distillation.jsonl`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row
from metasearch.runs.markdown import markdown

TASKS = ("tatoeba-11", "sts17", "lareqa")
MEAN_POOLS = ("both", "pairs", "multilingual")
"""Pools whose mean over languages is a task's score; translation has one of each direction, too."""


def stages_table(rows: Sequence[Row]) -> str:
    """Return the mean of each task's first measure after each stage of each study, times 100."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    first: dict[str, str] = {}
    for row in rows:
        if row["language"] != "mean" or row["pool"] not in MEAN_POOLS:
            continue
        if row["measure"] == first.setdefault(row["task"], row["measure"]):
            cells.setdefault((row["study"], row["learner"]), {})[row["task"]] = f"{100 * row['value']:.2f}"
    lines = [[study, stage, *(scores.get(task, "") for task in TASKS)] for (study, stage), scores in cells.items()]
    return markdown(["study", "after stage", *TASKS], lines, left=2)
