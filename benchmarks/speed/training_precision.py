"""MAML of `e5` in float32 and in bfloat16, on each fold of LAReQA: time of a step, losses, and the dev score after it.

    python -m benchmarks.speed.training_precision --data ~/data                 # five folds, an hour on one core

Each fold is trained in float32 with two seeds, which show the spread, and in bfloat16 with the first one. Negatives are
mined by the same vectors, and dev is encoded in bfloat16. Times are CPU times of a step on one thread.
"""

import statistics
import time
from pathlib import Path
from typing import Any, cast

import click
import torch

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from metasearch.config.library import load_recipe
from metasearch.config.precision import Precision
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.encoders.protocols import CachedEncoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.factory import fit, make_learner
from metasearch.runs.callbacks import Callback
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "training_precision.jsonl"
WAYS: tuple[tuple[Precision, int], ...] = (("float32", 0), ("bfloat16", 0), ("float32", 1))
"""Precision and seed of each training."""
TASK, MODE, RECIPE = "lareqa-sentences", "mono-bi-multi", "maml-e5"


class Timed(Callback):
    """Keeps the loss of each step, and the CPU seconds between steps."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.times: list[float] = []

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Keep the loss and the time of a step."""
        self.losses.append(round(terms["loss"], 4))
        self.times.append(time.process_time())

    @property
    def seconds(self) -> float:
        """Median time of a step."""
        return statistics.median(end - start for start, end in zip(self.times, self.times[1:], strict=False))


def trained(data: Path, fold: int, precision: Precision, seed: int, steps: int, base: CachedEncoder) -> Row:
    """Train and score once."""
    benchmark, timed = load_benchmark(TASK, mode=MODE, fold=fold, data=data), Timed()
    encoder, recipe = load_encoder("e5", benchmark.task.max_length, device="cpu"), load_recipe(RECIPE)
    fit(
        make_learner(recipe, encoder), benchmark, recipe, seed=seed, max_steps=steps, precision=precision,
        callback=timed, baseline=0.0, dev=cast(Any, _unscored), vectors=base,
    )  # fmt: skip
    encoder.choose_precision("bfloat16")
    dev = evaluate(encoder, benchmark.split.dev, benchmark.measures).mean("map@20")
    found = {"step_s": round(timed.seconds, 2), "losses": timed.losses, "dev": round(100 * dev, 3)}
    return {"fold": fold, "precision": precision, "seed": seed, "steps": steps, **found}


def _unscored() -> float:
    """Stand for a dev score, so that the last weights stay."""
    return 1.0


def table(rows: list[Row]) -> str:
    """Return a line of each fold: the ratio of times, the largest difference of losses, and dev scores."""
    found = {(row["fold"], row["precision"], row["seed"]): row for row in rows}
    lines = []
    for fold in sorted({row["fold"] for row in rows}):
        first, low, second = (found[fold, *way] for way in WAYS)
        apart = max(abs(one - other) for one, other in zip(first["losses"], low["losses"], strict=True))
        shown = [f"{row['dev']:.2f}" for row in (first, low, second)]
        lines.append([str(fold), f"{first['step_s'] / low['step_s']:.2f}", f"{apart:.3f}", *shown])
    heads = ["times as fast in bfloat16", "losses differ by", "dev, float32", "dev, bfloat16", "dev, float32, seed 1"]
    return markdown(["fold", *heads], lines)


@click.command(cls=Command)
@click.option("--data", required=True, type=click.Path(path_type=Path, exists=True), help="Folder of LAReQA.")
@click.option("--steps", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
def main(data: Path, steps: int, results: Path) -> None:
    """Train each fold in each way, keep a row of each, and print the table."""
    torch.set_num_threads(1)
    base = CachedEncoder(load_encoder("e5", device="cpu").choose_precision("bfloat16"))
    for fold in range(5):
        for precision, seed in WAYS:
            row = trained(data, fold, precision, seed, steps, base)
            append_rows(results, [{**row, **provenance()}])
            click.echo(row, err=True)
    click.echo(table(latest_rows(read_rows(results), lambda row: (row["fold"], row["precision"], row["seed"]))))


if __name__ == "__main__":
    main()
