"""What it costs `metasearch tune` to train no further folds of a step that is behind, and how many folds it saves.

    python -m benchmarks.statistics.behind                 # 1000 tunings of each design: five minutes on one core

Held-out scores are drawn as in `statistics.tuning`. The last step of three rankings is trained, and gains more than the
others, which gain nothing. It is chosen once among all scores, and once as `tune` does: without a step that is behind
the best untrained one after one, two or three of the four folds. A row of each design is kept in
`results/behind.jsonl`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.rows import RESULTS, Row, latest_rows, read_rows
from benchmarks.statistics import tuning
from metasearch.runs.markdown import markdown
from metasearch.search.tune.steps import ADAPTER, FINE_TUNE, Step
from metasearch.search.tune.table import Table

ROWS = RESULTS / "behind.jsonl"
STEPS = Step(), Step(ADAPTER), Step(FINE_TUNE)
"""Each has three rankings."""
UNTRAINED = 6
"""Lines of the steps that train nothing."""


@dataclass(frozen=True)
class Design:
    """Differences of a kind (`statistics.tuning`) of groups of so many questions, with a true gain of training."""

    kind: str
    groups: int
    questions: int
    gain: float


DESIGNS = tuple(
    Design(*kind, gain)
    for kind in (("normal", 12, 4), ("normal", 40, 3), ("skewed", 40, 1), ("real", 40, 1))
    for gain in (-0.05, 0.0, 0.05, 0.1)
)


def drawn(design: Design, random: np.random.Generator) -> Table:
    """Return the scores of a tuning, in which the last three lines are trained."""
    of = tuning.Design(3 * len(STEPS), design.groups, design.questions, kind=design.kind)
    table = tuning.tuning(of, random)
    table.scores[UNTRAINED:] += design.gain
    steps = np.repeat(np.array(STEPS, object), 3).tolist()
    return replace(table, lines=tuple(zip(steps, (pool for _, pool in table.lines), strict=True)))


def trained_folds(table: Table) -> int:
    """Return after how many folds training is behind; all folds if it never is."""
    count = len(np.unique(table.folds))
    for folds in range(1, count):
        there = table.folds < folds
        if replace(table, scores=table.scores[:, there], folds=table.folds[there]).behind():
            return folds
    return count


def compared(design: Design, count: int, seed: int) -> dict[str, float]:
    """Return how often a line without a gain, and the trained one, are kept in both ways, and the folds it trains."""
    random, found = np.random.default_rng(seed), dict.fromkeys(("all", "all trained", "some", "some trained"), 0)
    folds = 0
    for _ in range(count):
        table = drawn(design, random)
        own = trained_folds(table)
        left = table if own == len(np.unique(table.folds)) else replace(
            table, lines=table.lines[:UNTRAINED], scores=table.scores[:UNTRAINED], ended=len(table.lines) - UNTRAINED
        )  # fmt: skip
        for name, each in (("all", table), ("some", left)):
            line = each.choose()
            found[name] += line > 0
            found[f"{name} trained"] += line >= UNTRAINED
        folds += own
    return {**{name: number / count for name, number in found.items()}, "folds": folds / count}


def behind_table(rows: list[Row]) -> str:
    """Return a line of each design: what is kept, in percent of the tunings, and the folds that are trained."""
    lines = []
    for row in latest_rows(rows, lambda row: tuple(row["design"].values())):
        design, found = Design(**row["design"]), row["found"]
        name = f"{design.kind}, {design.groups} groups of {design.questions}"
        pairs = (("all", "some"), ("all trained", "some trained"))
        shares = (" → ".join(f"{100 * found[each]:.1f}" for each in pair) for pair in pairs)
        lines.append([name, f"{100 * design.gain:+.0f}", *shares, f"{found['folds']:.1f}"])
    heads = ["kept, in %: all folds → ends early", "gain of training", "any line", "a trained line", "folds of four"]
    return markdown(heads, lines)


@click.command(cls=Command)
@click.option("--tunings", type=click.IntRange(min=1), default=1000, show_default=True, help="Of each design.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
def main(tunings: int, seed: int, results: Path) -> None:
    """Simulate, keep a row of each design, and print the table."""
    tuning.keep_rows(DESIGNS, compared, tunings, seed, results)
    click.echo(behind_table(read_rows(results)))


if __name__ == "__main__":
    main()
