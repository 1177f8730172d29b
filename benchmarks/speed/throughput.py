"""How fast a training step is, beside the plain loops: same weights, same meta-batches, same gradients.

    python -m benchmarks.speed.throughput --data ~/data
    python -m benchmarks.speed.throughput --shape A1 --case maml --way learn2learn --rounds 5
    python -m benchmarks.speed.throughput --shape XLMR --case maml --rounds 1

A step is a whole outer step with its optimiser: k 8, q 4, 3 negatives, n 5, meta-batch 4, texts of XQuAD-R cut at 96
and 256 tokens. Each way (see `loops` and `race.WAYS`) trains its own copy of the encoder in its own process; they
take turns, step by step, on the same meta-batches, of which the first is not timed. A figure is the median of the
rounds (of ratios: of those within a round) with the lowest and the highest. Memory is the peak of a process above
weights and data, in the first meta-batch, until the optimiser begins; `whole_step` is that with the optimiser.

The gradient of the first meta-batch is compared with each peer's; a difference beyond rounding ends the run with an
error. `times X` is how many times as long X takes as ours, `cpu` the same by CPU time.

`--scale small` runs every case in seconds, in one process on the embedded task; its figures mean nothing.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import torch

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows
from benchmarks.speed.cases import CASES, Session
from benchmarks.speed.shapes import SCALES
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "throughput.jsonl"
SHAPES = tuple(SCALES["full"].shapes)
PEERS = ("learn2learn", "authors", "plain")
SHOWN = ("case", "shape", "metric", "value", "low", "high")


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", help="Folder of the data sets.")
@click.option("--shape", "shapes", type=click.Choice(SHAPES), multiple=True, default=("A1", "B"), show_default=True)
@click.option("--case", "cases", type=click.Choice(list(CASES)), multiple=True, default=tuple(CASES))
@click.option("--way", "ways", type=click.Choice(PEERS), multiple=True, help="Only these peers.")
@click.option("--inner-steps", type=click.IntRange(min=1), help="In second order; by default 5, and 2 for B's ratio.")
@click.option("--scale", type=click.Choice(list(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=RESULTS / "throughput.jsonl", help="Rows to add to."
)
def main(
    data: str | None,
    shapes: Sequence[str],
    cases: Sequence[str],
    ways: Sequence[str],
    inner_steps: int | None,
    scale: str,
    rounds: int,
    threads: int,
    output: Path,
) -> None:
    """Measure the cases on the shapes, keep each row as soon as it is there, and print the table."""
    torch.set_num_threads(threads)
    shown: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            session = Session(
                scale,
                shape,
                rounds,
                threads,
                data if scale == "full" else None,
                Path(folder),
                ways or None,
                inner_steps,
            )
            for case in cases:
                rows = [{**row, **provenance()} for row in CASES[case](session)]
                append_rows(output, rows)
                shown += rows
    click.echo(markdown(list(SHOWN), [[str(row[key]) for key in SHOWN] for row in shown], left=3))


if __name__ == "__main__":
    main()
