"""How many episodes a second the training of an adapter takes: drawing, gradients and optimiser, in one thread.

    python -m benchmarks.speed.adapters --data ~/data

Recipes of the papers: k 8, q 4, 3 negatives, 5 inner steps, meta-batch 4; fine-tuning takes a step on each episode.
Vectors of 384 dimensions are drawn at random. Figures are CPU time, the best and the median of the rounds.
"""

import time
from collections.abc import Sequence
from statistics import median

import click
import numpy as np
import torch

from benchmarks.common.command import Command
from benchmarks.speed.loops import OuterStep
from metasearch.config.library import load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import grouped, texts_of
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.load import load_encoder
from metasearch.encoders.protocols import CachedEncoder
from metasearch.episodes.samplers import samplers
from metasearch.pipelines.factory import make_learner
from metasearch.runs.markdown import markdown
from metasearch.training.outer_gradients import OuterGradients

CASES = (
    ("fine-tune", "trans", ()),
    ("maml", "trans", ()),
    ("maml", "trans", ("options.first_order=false",)),
    ("maml-align", "mono-bi-multi", ()),
    ("meta-sgd", "trans", ()),
    ("reptile", "trans", ()),
)
STEPS = 4
"""Outer steps of a round."""


def episodes_a_second(
    learner: str, mode: str, changes: Sequence[str], task: str, data: str | None, rounds: int
) -> list[float]:
    """Return the rate of each round."""
    benchmark, recipe = load_benchmark(task, mode, data=data), load_recipe(learner, changes)
    base = load_encoder("mini-e5", device="cpu")
    drawn, rng = CachedEncoder(base), np.random.default_rng(0)
    distinct = dict.fromkeys((each.role, each.text) for each in texts_of(benchmark.data))
    for role, own in grouped(distinct, lambda each: each[0]).items():
        rows = rng.normal(size=(len(own), base.dimension())).astype(np.float32)
        drawn.add([text for _, text in own], role, rows / np.linalg.norm(rows, axis=1, keepdims=True))
    encoder = AdaptedEncoder(base, MatrixAdapter(base.dimension()), vectors=drawn)
    episodes, size = samplers(benchmark, recipe, 0)["meta-train"], recipe.budget.meta_batch
    step = OuterStep(make_learner(recipe, encoder), OuterGradients(encoder), recipe.outer, recipe.dropout)
    rates = []
    for number in range(rounds + 1):
        start = time.process_time()
        for i in range(STEPS):
            step(episodes.batch(STEPS * number + i, size))
        rates.append(STEPS * size / (time.process_time() - start))
    return rates[1:]


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", help="Folder of the data sets.")
@click.option("--task", default="lareqa", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=40, show_default=True)
def main(data: str | None, task: str, rounds: int) -> None:
    """Print the rates of all learners."""
    torch.set_num_threads(1)
    lines = []
    for learner, mode, changes in CASES:
        rates = episodes_a_second(learner, mode, changes, task, data, rounds)
        lines.append([" ".join([learner, *changes]), f"{max(rates):.0f}", f"{median(rates):.0f}"])
    click.echo(markdown(["episodes a second", "best", "median"], lines))


if __name__ == "__main__":
    main()
