"""The table of the ablations in Markdown, from rows of `results/mini_ablations.jsonl`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row
from benchmarks.paper.ablation_arms import STUDIES
from metasearch.runs.markdown import markdown

_FACTS = {"M parameters": ("parameters", 1e-6, 2), "MiB, int8": ("int8_mib", 1, 1), "sentences/s": ("cpu", 1, 0)}
"""Head of a column → fact, factor and decimals."""


def ablation_table(rows: Sequence[Row], teacher: str) -> str:
    """Return a line for each arm of a study: scores times 100, differences from its baseline, sizes and speed.

    Args:
        rows: rows by `ablation_rows.arm_rows` and `ablation_rows.difference_rows`.
        teacher: the name of the study.
    """
    study = STUDIES[teacher]
    values = {(row["study"], row["metric"]): row for row in rows}
    lines = []
    for arm in study.arms:
        other = study.against.get(arm)
        if all((arm, test) in values for test in study.tests):
            scores = [f"{100 * values[arm, test]['value']:.2f}" for test in study.tests]
            changes = [_difference(values.get((f"{arm} - {other}", test))) for test in study.tests]
            facts = [_fact(values.get((arm, name)), *shape) for name, *shape in _FACTS.values()]
            beside = f"; baseline {other}" if other else ""
            lines.append([arm, f"{study.description(arm)}{beside}", *scores, *changes, *facts])
    heads = ["arm", "description, baseline", *study.tests, *(f"Δ {test}" for test in study.tests), *_FACTS]
    return markdown(heads, lines, left=2)


def _difference(row: Row | None) -> str:
    if row is None:
        return ""
    interval = "" if row["low"] is None else f" ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
    return f"{100 * row['value']:+.1f}{interval}"


def _fact(row: Row | None, times: float, digits: int) -> str:
    return "" if row is None else f"{times * row['value']:.{digits}f}"
