"""How often tests of two learners reject when they do not differ: what each promises is 5 %.

    python -m benchmarks.statistics.calibration                  # 2000 studies of each design: ten minutes on one core
    python -m benchmarks.statistics.calibration --studies 200

Studies without a true difference are made of random effects (`nulls`), and each test (`methods`) is asked of the same
ones. A row of each design is kept in `results/calibration.jsonl`; the last of a design counts.
"""

from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from benchmarks.statistics.methods import METHODS
from benchmarks.statistics.nulls import BEYOND, DESIGNS, Design, studies
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "calibration.jsonl"


def rejected(design: Design, count: int, seed: int, methods: tuple[str, ...] = tuple(METHODS)) -> dict[str, float]:
    """Return the share of studies without a difference in which each test finds one."""
    drawn = studies(design, count, np.random.default_rng(seed))
    # A method that draws does not change the studies of the others.
    random = {name: np.random.default_rng(seed) for name in methods}
    found = [[METHODS[name](study, random[name]) for name in methods] for study in drawn]
    return dict(zip(methods, np.mean(found, axis=0).tolist(), strict=True))


def calibration_table(rows: list[Row]) -> str:
    """Return a line of each design: the share of true nulls that each test rejects at 5 %, in percent."""
    last = latest_rows(rows, lambda row: row["design"]["name"])
    lines = [[row["design"]["name"], *(f"{100 * row['rejected'][name]:.1f}" for name in METHODS)] for row in last]
    return markdown(["true nulls rejected at 5 %, in %", *METHODS], lines)


@click.command(cls=Command)
@click.option("--studies", "count", type=click.IntRange(min=1), default=2000, show_default=True, help="Of each design.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
def main(count: int, seed: int, results: Path) -> None:
    """Simulate, keep a row of each design, and print the table."""
    for design in (*DESIGNS, *BEYOND):
        row = {"design": asdict(design), "studies": count, "seed": seed, "rejected": rejected(design, count, seed)}
        append_rows(results, [{**row, **provenance()}])
        click.echo(f"{design.name}: {row['rejected']}", err=True)
    click.echo(calibration_table(read_rows(results)))


if __name__ == "__main__":
    main()
