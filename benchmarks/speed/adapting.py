"""Memory and time of an outer step in which all weights adapt, or a part of them (`options.adapt`).

    python -m benchmarks.speed.adapting --data ~/data

First-order MAML, one episode. The parts take turns, each in a process of its own, one at a time: a first step, a second
one, which is timed, and a third one, whose tensors are counted. Memory is the peak until the optimiser begins, of the
tensors beside the weights, and of the process in the first step, above weights and data. Figures are medians of the
rounds, ratios those of ratios within a round.

`--scale small` runs in seconds, on the embedded task; its figures mean nothing.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row
from benchmarks.speed.race import Job
from benchmarks.speed.shapes import SCALES, Setting, encoder_of
from benchmarks.speed.speed_tables import adapting_table
from benchmarks.speed.turns import in_turns
from metasearch.runs.rows import append_rows

ROWS = RESULTS / "adapting.jsonl"
PARTS = ("all", "last:1", "bias", "lora:4")
SIZES = ("episodes.k=4", "episodes.q=2", "episodes.n_neg=1", "options.first_order=true")


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", help="Folder of the data sets.")
@click.option("--shape", "shapes", type=click.Choice(["mini", "B", "XLMR"]), multiple=True, default=("mini", "B"))
@click.option("--inner-steps", type=click.IntRange(min=1), default=5, show_default=True, help="On the support set.")
@click.option("--scale", type=click.Choice(list(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROWS, help="Rows to add to.")
def main(
    data: str | None, shapes: Sequence[str], inner_steps: int, scale: str, rounds: int, threads: int, output: Path
) -> None:
    """Measure each shape, keep its rows as soon as they are there, and print the table."""
    shown: list[Row] = []
    for shape in shapes:
        with tempfile.TemporaryDirectory() as folder:
            encoder = encoder_of(scale, shape, Path(folder) / "encoder", data)
            jobs = {}
            for part in PARTS:
                own = (*SIZES, f"options.inner_steps={inner_steps}", f"options.adapt={part}")
                setting = Setting.of(scale, shape, encoder, "maml", 2, data=data, batch=1, assignments=own)
                jobs[part] = Job("fast", setting, threads)
            found = in_turns(jobs, rounds, SCALES[scale].apart, Path(folder))
        facts = {"shape": shape, "scale": scale, "inner_steps": inner_steps, "rounds": rounds, "threads": threads}
        rows: list[Row] = [{**facts, "adapt": part, **row, **provenance()} for part, row in found.items()]
        append_rows(output, rows)
        shown += rows
    click.echo(adapting_table(shown))


if __name__ == "__main__":
    main()
