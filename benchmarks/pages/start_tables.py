"""The tables of `results/starts.jsonl`: what each arm gains more than another one, such as what ships."""

from collections.abc import Sequence

import numpy as np

from benchmarks.common.rows import Row
from metasearch.evaluation.statistics.paired import PairedTest, clustered_test, holm, student
from metasearch.runs.markdown import markdown
from metasearch.search.tune.steps import REMEMBERED

LABELLED, OTHER = 0, 1
"""Parts of a row: pages with labels, asked in other languages, and other pages."""


def differences(
    rows: Sequence[Row], arm: str, base: str, part: int, counts: Sequence[int]
) -> tuple[list[float], list[str]]:
    """Return the differences of titles between two arms, as means of pages, and the page of each title, `(n,)`."""
    last = {(row["set"], row["labels"], row["arm"]): row["pages"][part] for row in rows}
    values, pages = list[float](), list[str]()
    for (name, count, own), found in last.items():
        if own == arm and count in counts:
            before = last[name, count, base]
            for page, (size, total) in found.items():
                values += [(total - before[page][1]) / size] * int(size)
                pages += [f"{name} {page}"] * int(size)
    return values, pages


def by_page(rows: Sequence[Row], arm: str, base: str, part: int, counts: Sequence[int]) -> PairedTest:
    """Return the test of two arms over titles, clustered by page."""
    values, pages = differences(rows, arm, base, part, counts)
    return clustered_test(values, [0.0] * len(values), pages)


def by_manual(rows: Sequence[Row], arm: str, base: str, counts: Sequence[int]) -> PairedTest:
    """Return the same test on labelled pages over the means of manuals."""
    values, pages = differences(rows, arm, base, LABELLED, counts)
    sets = np.array([page.split()[0] for page in pages])
    means = [float(np.array(values)[sets == name].mean()) for name in dict.fromkeys(sets.tolist())]
    return student(np.array(means), max(map(abs, means)))


def table(rows: Sequence[Row], base: str = REMEMBERED) -> str:
    """Return the differences of mAP@20 from what ships, or from another arm.

    The p-value is of labelled pages, after Holm's correction over arms.
    """
    arms = sorted({row["arm"]: 0 for row in rows if row["arm"] != base}, key=lambda arm: arm.startswith("best"))
    counts = sorted({row["labels"] for row in rows})
    adjusted = holm([by_page(rows, arm, base, LABELLED, counts).p for arm in arms])
    lines = [
        (
            arm,
            *(_cell(by_page(rows, arm, base, LABELLED, [count])) for count in counts),
            _cell(by_manual(rows, arm, base, counts)),
            "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
            _cell(by_page(rows, arm, base, OTHER, counts)),
        )
        for arm, p in zip(arms, adjusted, strict=True)
    ]
    heads = [f"labelled pages, {count} labels, {_mean(rows, base, LABELLED, [count])}" for count in counts]
    other = f"other pages, {_mean(rows, base, OTHER, counts)}"
    head = "Δ vs what ships" if base == REMEMBERED else f"Δ vs {base}"
    return markdown((head, *heads, "both, over manuals", "Holm's p", other), lines)


def _mean(rows: Sequence[Row], arm: str, part: int, counts: Sequence[int]) -> str:
    """Return the score of an arm, the mean over titles."""
    last = {(row["set"], row["labels"]): row["pages"][part] for row in rows if row["arm"] == arm}
    pages = [page for (_, count), own in last.items() if count in counts for page in own.values()]
    return f"{100 * sum(total for _, total in pages) / sum(size for size, _ in pages):.1f}"


def _cell(test: PairedTest) -> str:
    return f"{100 * test.mean:+.1f} [{100 * (test.low or 0):+.1f}, {100 * (test.high or 0):+.1f}]"
