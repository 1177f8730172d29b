"""Rows of `results/mini_ablations.jsonl` and the two tables that are made of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.rows import Row
from benchmarks.paper.ablation_scores import TESTS, Figure
from benchmarks.paper.distillation_papers import ORDERINGS, Ordering
from metasearch.runs.markdown import markdown

Figures = Mapping[str, Mapping[str, Figure]]
"""Arm → test → what it got."""

NOTE = (
    "Differences times 100, in parentheses their 95% intervals over test items (paired bootstrap). The paper's means "
    "are over the same pairs of languages where it gives them. One seed: what another seed would change is not in the "
    "intervals, so that `yes` and `no` say which way this one training went."
)
_VERDICTS = ("STS 2017", "Tatoeba", "LAReQA")


def arm_rows(figures: Figures, facts: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return a row for each arm and test, and one for each of its facts: sizes, and sentences per second."""
    rows: list[Row] = []
    for arm, found in figures.items():
        for test, figure in found.items():
            shown = figure.interval()
            measure = {"task": TESTS[test].task, "measure": TESTS[test].measure, "data": figure.data}
            scored = {"value": figure.value, "low": shown.low, "high": shown.high}
            rows.append({"study": arm, "metric": test, **scored, **measure})
        for metric, value in facts.get(arm, {}).items():
            middle, low, high = value if isinstance(value, list) else (value, None, None)
            rows.append({"study": arm, "metric": metric, "value": middle, "low": low, "high": high})
    return rows


def ordering_rows(figures: Figures, orderings: Sequence[Ordering] = ORDERINGS) -> list[Row]:
    """Return a row for each ordering of which both arms are there, and each test."""
    rows: list[Row] = []
    for each in orderings:
        if each.better not in figures or each.worse not in figures:
            continue
        for test in TESTS:
            found = figures[each.better][test].above(figures[each.worse][test])
            shown = found.interval()
            row = {"study": each.said, "metric": test, "value": found.value, "low": shown.low, "high": shown.high}
            rows.append({**row, "better": each.better, "worse": each.worse, "holds": verdict(row)})
    return rows


def verdict(row: Mapping[str, Any]) -> str:
    """Return whether a difference is above zero: `yes`, `no`, or `open` where its interval has zero in it."""
    if row["low"] is not None and row["low"] > 0:
        return "yes"
    return "no" if row["high"] is not None and row["high"] < 0 else "open"


def arm_table(rows: Sequence[Mapping[str, Any]], said: Mapping[str, str]) -> str:
    """Return the arms, a line each: scores times 100, sizes, and sentences per second of a processor.

    Args:
        rows: by `arm_rows`.
        said: arm → what it is.
    """
    cells = {(row["study"], row["metric"]): row["value"] for row in rows}
    heads = ["arm", "", *TESTS, "M parameters", "MiB float32", "MiB int8", "sentences/s"]
    lines = []
    for arm in dict.fromkeys(row["study"] for row in rows):
        scores = [_shown(cells.get((arm, test)), 100) for test in TESTS]
        facts = [
            _shown(cells.get((arm, "parameters")), 1e-6),
            *(_shown(cells.get((arm, metric)), 1, 1) for metric in ("float32_mib", "int8_mib")),
            _shown(cells.get((arm, "cpu")), 1, 0),
        ]
        lines.append([arm, said.get(arm, ""), *scores, *facts])
    return markdown(heads, lines, left=2)


def ordering_table(rows: Sequence[Mapping[str, Any]], orderings: Sequence[Ordering] = ORDERINGS) -> str:
    """Return the paper's orderings, a line each: its differences, ours beside them, and whether the ordering holds.

    Args:
        rows: by `ordering_rows`.
        orderings: with the paper's figures.
    """
    by_key = {(row["study"], row["metric"]): row for row in rows}
    heads = ["ordering", "paper: STS mono", "cross", "ours: STS mono", "cross", *_VERDICTS, "holds?"]
    lines = []
    for each in orderings:
        if (each.said, "STS 2017") not in by_key:
            continue
        found = {test: by_key[each.said, test] for test in TESTS}
        paper = [_published(each, part) for part in ("mono", "cross")]
        ours = [f"{100 * found[f'STS {part}']['value']:+.1f}" for part in ("mono", "cross")]
        verdicts = ", ".join(f"{test.split()[0]} {found[test]['holds']}" for test in _VERDICTS)
        said = f"{each.said} ({each.note})" if each.note else each.said
        lines.append([said, *paper, *ours, *(_difference(found[test]) for test in _VERDICTS), verdicts])
    return markdown(heads, lines) + f"\n\n{NOTE}"


def _published(each: Ordering, part: str) -> str:
    """Return the paper's differences in a part of STS 2017, by its encoders."""
    return ", ".join(
        f"{encoder} {getattr(better, part) - getattr(worse, part):+.1f}"
        for encoder, (better, worse) in each.published.items()
    )


def _difference(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return f"{100 * row['value']:+.1f}"
    return f"{100 * row['value']:+.1f} ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"


def _shown(value: float | None, times: float, digits: int = 2) -> str:
    return "" if value is None else f"{times * value:.{digits}f}"
