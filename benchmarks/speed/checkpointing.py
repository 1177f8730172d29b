"""Memory and time of an outer step in which all is kept, or layers or texts are computed again on the way back.

    python -m benchmarks.speed.checkpointing --data ~/data
    python -m benchmarks.speed.checkpointing --data ~/data --shape mini --k 64

In float32 and bfloat16; texts in float32 alone.

First-order MAML, one episode, one inner step. The ways take turns, each in a process of its own, one at a time: a first
step, a second one, which is timed, and a third one, whose tensors are counted. Memory is the peak until the optimiser
begins: of tensors beside the weights, as an allocator without loss would need it; and of the process in the first
step, above weights and data. Figures are medians over the rounds, also of the ratios within a round.
`gradient_error` is to the first way, 0 for the same bits.

`--scale small` runs in seconds, on the embedded task; its figures mean nothing.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import click
import torch

from benchmarks.common.clock import Seconds
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows
from benchmarks.speed.race import Job, relative_error, running
from benchmarks.speed.shapes import SCALES, Setting, encoder_of
from benchmarks.speed.speed_tables import CHECKPOINTING_WAYS, checkpointing_table

ROWS = RESULTS / "checkpointing.jsonl"
WAYS = CHECKPOINTING_WAYS
SIZES = ("episodes.q=2", "episodes.n_neg=1", "options.inner_steps=1", "options.first_order=true")


def in_turns(jobs: Mapping[str, Job], rounds: int, apart: bool, folder: Path) -> dict[str, Row]:
    """Return memory, seconds a step and ratios to the first job, for each job by name.

    Every round runs each job once, every other one in reverse. Figures are medians over the rounds, also of
    ratios within a round. The first gradient of the last round is left in `NAME.pt` of the folder.
    """
    names = list(jobs)
    seconds: dict[str, list[Seconds]] = {name: [] for name in names}
    memory: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else names[::-1]:
            with running(jobs[name], apart) as ready:
                memory[name].append(ready.first(folder / f"{name}.pt"))
                seconds[name].append(ready.step())
                memory[name][-1]["tensors"] = ready.tensors()
    return {
        name: {
            **{
                f"{what}_mib": round(median(peak[found] for peak in memory[name]), 1)
                for what, found in (("tensors", "tensors"), ("process", "gradient"))
            },
            "seconds": round(median(wall for wall, _ in seconds[name]), 3),
            **{
                what: round(median(a[i] / b[i] for a, b in zip(seconds[name], seconds[names[0]], strict=True)), 3)
                for i, what in enumerate(("times", "cpu"))
            },
        }
        for name in names
    }


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", help="Folder of the data sets.")
@click.option("--shape", "shapes", type=click.Choice(["mini", "XLMR"]), multiple=True, default=("mini", "XLMR"))
@click.option("--k", type=click.IntRange(min=1), default=4, show_default=True, help="Triplets of a support set.")
@click.option("--scale", type=click.Choice(list(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROWS, help="Rows to add to.")
def main(data: str | None, shapes: Sequence[str], k: int, scale: str, rounds: int, threads: int, output: Path) -> None:
    """Measure each shape, keep its rows as soon as they are there, and print the table."""
    shown: list[Row] = []
    for shape in shapes:
        with tempfile.TemporaryDirectory() as folder:
            encoder = encoder_of(scale, shape, Path(folder) / "encoder", data)
            assignments = (f"episodes.k={k}", *SIZES)
            setting = Setting.of(scale, shape, encoder, "maml", 2, data=data, batch=1, assignments=assignments)
            jobs = {way: Job(way, setting, threads) for way in WAYS}
            found = in_turns(jobs, rounds, SCALES[scale].apart, Path(folder))
            for way, row in found.items():
                row["gradient_error"] = _error(Path(folder), way)
        facts = {"shape": shape, "scale": scale, "k": k, "rounds": rounds, "threads": threads}
        rows: list[Row] = [{**facts, "way": way, **row, **provenance()} for way, row in found.items()]
        append_rows(output, rows)
        shown += rows
    click.echo(checkpointing_table(shown))


def _error(folder: Path, way: str) -> float:
    """Return the difference of a way's first gradient from that of the first way; 0 where the bits are the same."""
    mine, kept = (torch.load(folder / f"{name}.pt", weights_only=True) for name in (way, WAYS[0]))
    return relative_error(mine, kept)


if __name__ == "__main__":
    main()
