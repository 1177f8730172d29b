"""What it costs `metasearch tune` to allow for losses that none of its groups shows, and what that prevents.

    python -m benchmarks.statistics.unseen_losses                 # 1000 tunings of each design: two minutes on one core

One line is compared with the base encoder as in `statistics.tuning`. Its mean difference is 0, or a gain that should be
found. Each test allows for unseen losses up to another size; 100 points are all that two scores can differ by, so that
the last test holds for any differences. A row of each design is kept in `results/unseen_losses.jsonl`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.rows import RESULTS, Row, latest_rows, read_rows
from benchmarks.statistics import tuning
from metasearch.runs.markdown import markdown
from metasearch.search.tune.max_t import Gains, chance_unseen
from metasearch.search.tune.table import ALPHA

ROWS = RESULTS / "unseen_losses.jsonl"
LOSSES = 0.0, 0.2, 0.45, 1.0
"""Largest unseen loss that a test allows for; `tune` takes the second."""
GROUPS = 12, 20, 40, 100


@dataclass(frozen=True)
class Design:
    """Differences of a kind (`statistics.tuning`) of so many groups, with a true gain."""

    kind: str
    groups: int
    gain: float


DESIGNS = tuple(
    Design(kind, groups, gain)
    for kind, gain in (("skewed", 0), ("rare losses", 0), ("real", 0), ("real", 0.03), ("real", 0.05))
    for groups in GROUPS
)


def significant(design: Design, count: int, seed: int) -> dict[str, float]:
    """Return the share of tunings that find a gain, by the largest unseen loss that a test allows for."""
    random, found = np.random.default_rng(seed), {str(loss): 0 for loss in LOSSES}
    for _ in range(count):
        table = tuning.tuning(tuning.Design(2, design.groups, 1, kind=design.kind), random)
        differences = table.scores[1:] - table.scores[:1] + design.gain
        tests = Gains.of(differences, table.groups)
        for loss in LOSSES:
            unseen = chance_unseen(loss, differences.mean(axis=1), design.groups) if loss else np.zeros(1)
            found[str(loss)] += replace(tests, unseen=unseen).p() < ALPHA
    return {loss: number / count for loss, number in found.items()}


def losses_table(rows: list[Row]) -> str:
    """Return a line of each design: the share of tunings in which each test finds a gain, in percent."""
    last = latest_rows(rows, lambda row: tuple(row["design"].values()))
    lines = [
        [f"{row['design']['kind']}, {row['design']['groups']} groups", f"+{100 * row['design']['gain']:.0f}"]
        + [f"{100 * row['found'][str(loss)]:.1f}" for loss in LOSSES]
        for row in last
    ]
    heads = ["none", *(f"up to {100 * loss:.0f}" for loss in LOSSES[1:-1]), "any"]
    return markdown(["unseen losses allowed for: significant, %", "true gain", *heads], lines)


@click.command(cls=Command)
@click.option("--tunings", type=click.IntRange(min=1), default=1000, show_default=True, help="Of each design.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
def main(tunings: int, seed: int, results: Path) -> None:
    """Simulate, keep a row of each design, and print the table."""
    tuning.keep_rows(DESIGNS, significant, tunings, seed, results)
    click.echo(losses_table(read_rows(results)))


if __name__ == "__main__":
    main()
