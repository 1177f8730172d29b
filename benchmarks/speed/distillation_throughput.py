"""Pairs per second of two stages of distillation, beside sentence-transformers' own way to learn from translations.

    python -m benchmarks.speed.distillation_throughput --data ~/data
    python -m benchmarks.speed.distillation_throughput --shape large-table --stage contrast --rounds 8

All train copies of the same student on the same pairs, with the recipe's batch, length, dropout and optimiser settings.
Rounds of some steps take turns in one process, so that what else the machine does falls on all. Our batches are the
first of an epoch of 50, pairs of similar length together; the peer has the pairs of our round in random order. A first
round of one step is not counted. No side is scored or writes checkpoints while it is timed.

Ours is the loop of `metasearch distill` on the fast engine, `metasearch-reference` the same on the reference. The
peer's ways are

- `st-live`: the frozen encoder encodes each batch, as `ParallelSentencesDataset` does without its cache; then
  `MSELoss`, clipping, and the fused AdamW that transformers' Trainer takes by default since torch 2.8;
- `st-live-loop`: the same with torch's default AdamW, a loop on a CPU, which the older `fit` takes;
- `st-labels`: all vectors computed before training, as `make_multilingual.py` does; fused AdamW.

In stage `contrast` we compute a contrastive loss besides, which the peer has no counterpart of. Time before the first
step (ours: counting tokens and filling the store; of `st-labels`: the vectors) is spread over the epochs of the recipe
and, in rows of their own, charged to a single one. Metrics that begin with `cpu_` are by the time of the processor,
which says more than the clock on the wall where other work shares the machine.
"""

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from benchmarks.common.clock import Seconds, clock
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS
from benchmarks.speed.outer_step import OuterStep
from benchmarks.speed.sentence_transformers_loop import WAYS as OF_PEER
from benchmarks.speed.sentence_transformers_loop import peers_of
from benchmarks.speed.students import SCALES, SHAPES, read_pairs, student_of
from metasearch.compress.vocabulary import train_tokenizer, with_vocabulary
from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.batches import Batches
from metasearch.jobs.compose import load_encoder, make_gradients
from metasearch.jobs.distill.sources import Source
from metasearch.jobs.distill.stage import learner_of
from metasearch.jobs.distill.target_store import stored_targets
from metasearch.runs.markdown import markdown
from metasearch.runs.rows import append_rows
from metasearch.spec.library import load_distillation
from metasearch.spec.recipe import Engine, MaxLength
from metasearch.spec.seeding import stream
from metasearch.spec.stages import Stage

STAGES = ("student", "contrast")
REFERENCE = "metasearch-reference"
ROWS = RESULTS / "distillation_throughput.jsonl"
WAYS = (REFERENCE, *OF_PEER)
SHOWN = ("case", "shape", "way", "metric", "epochs", "value", "low", "high")


def measure(
    stage: Stage,
    student: Encoder,
    frozen: Encoder,
    pairs: Sequence[Translation],
    batch: int,
    ends: Sequence[int],
    ways: Sequence[str],
) -> tuple[dict[str, list[Seconds]], dict[str, Seconds]]:
    """Return the seconds of each round, and those before the first step for a round's share of pairs, by way."""
    kind, options, wanted = learner_of(stage, "stage")
    assert wanted is not None
    began = clock()
    batches = Batches(pairs, Source.lengths(pairs, student), batch, seed=0)
    counting = clock() - began
    drawn = [[pairs[i] for step in steps_of(number, ends) for i in batches.rows(step)] for number in range(len(ends))]
    used = [pair for pairs_of_round in drawn for pair in pairs_of_round]
    peers, labelling = peers_of([way for way in ways if way in OF_PEER], stage, student, frozen, drawn)
    with tempfile.TemporaryDirectory() as folder:
        texts = [text for pair in used for text in (pair.texts if wanted.translations else [pair.source])]
        began = clock()
        targets = stored_targets(Path(folder), frozen, texts, "text", "pooled")
        filling = clock() - began

        def ours_on(engine: Engine) -> Callable[[int], Seconds]:
            own = Encoder(copy.deepcopy(student.model), student.name, student.max_length)
            learner = kind(own, stage.loss, options, targets)
            learner.begin(ends[-1])
            return in_rounds(
                OuterStep(learner, make_gradients(own, engine), stage.outer, stage.dropout), batches, batch, ends
            )

        reference = {REFERENCE: ours_on("reference")} if REFERENCE in ways else {}
        runs = {"metasearch": ours_on("fast"), **reference, **peers}
        seconds: dict[str, list[Seconds]] = {way: [] for way in runs}
        for number in range(len(ends)):
            for way, run in runs.items():
                seconds[way].append(run(number))
    share = len(drawn[-1]) / len(used)
    ours = share * filling + counting * len(drawn[-1]) / len(pairs)
    before = {"metasearch": ours, REFERENCE: ours, "st-labels": share * labelling}
    return {way: taken[1:] for way, taken in seconds.items()}, before


def steps_of(number: int, ends: Sequence[int]) -> range:
    """Return the steps of a round, from the last step of each round."""
    return range(ends[number - 1] if number else 0, ends[number])


def in_rounds(step: OuterStep, batches: Batches, batch: int, ends: Sequence[int]) -> Callable[[int], Seconds]:
    """Return what takes the steps of a round by its number and returns their seconds."""

    def run(number: int) -> Seconds:
        began = clock()
        for position in steps_of(number, ends):
            step(batches.batch(position, batch))
        return clock() - began

    return run


def rows_of(
    seconds: Mapping[str, Sequence[Seconds]], before: Mapping[str, Seconds], pairs: int, epochs: int
) -> list[dict[str, Any]]:
    """Return pairs per second of each way, and how many times as many ours are; medians over rounds of so many pairs.

    The time before the first step is spread over a number of epochs. Each figure comes by both clocks.
    """
    none = np.zeros(2)
    whole = {way: np.array(taken) + before.get(way, none) / epochs for way, taken in seconds.items()}
    rows = []
    for way, taken in whole.items():
        figures = {"pairs_per_second": pairs / taken}
        if way != "metasearch":
            figures["ratio"] = taken / whole["metasearch"]
        for (name, values), (column, prefix) in product(figures.items(), enumerate(("", "cpu_"))):
            by_clock = values[:, column]
            spread = {"value": np.median(by_clock), "low": by_clock.min(), "high": by_clock.max()}
            rounded = {key: round(float(value), 3) for key, value in spread.items()}
            ahead = round(float(before.get(way, none)[column]), 3)
            rows.append({"way": way, "metric": prefix + name, "epochs": epochs, **rounded, "before": ahead})
    return rows


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", type=click.Path(path_type=Path), help="Parent of parallel/.")
@click.option("--shape", "shapes", type=click.Choice(SHAPES), multiple=True, default=SHAPES, help="Of the student.")
@click.option("--stage", "stages", type=click.Choice(STAGES), multiple=True, default=STAGES, help="Of the recipe.")
@click.option("--way", "ways", type=click.Choice(WAYS), multiple=True, default=WAYS, help="Beside ours.")
@click.option("--scale", type=click.Choice(sorted(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=4, show_default=True, help="Of a round.")
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=RESULTS / "distillation_throughput.jsonl",
    help="Rows to add to.",
)
def main(
    data: Path | None,
    shapes: Sequence[str],
    stages: Sequence[str],
    ways: Sequence[str],
    scale: str,
    rounds: int,
    steps: int,
    threads: int,
    output: Path,
) -> None:
    """Time each stage on each shape, print the table, and keep the figures."""
    torch.set_num_threads(threads)
    recipe, size = load_distillation("compress"), SCALES[scale]
    corpus = read_pairs(data)
    pairs = [corpus[i] for i in stream(0, "pairs").choice(len(corpus), size.pairs, replace=False).tolist()]
    teacher = load_encoder(size.encoder, MaxLength(text=recipe.stages["student"].max_length), device="cpu")
    tokenizer = train_tokenizer([text for pair in corpus for text in pair.texts], size.vocabulary, "bpe")
    assistant = with_vocabulary(teacher, tokenizer)
    ends = [1 + steps * i for i in range(rounds + 1)]
    shown = []
    for shape in shapes:
        for name in stages:
            stage = recipe.stages[name]
            against = teacher if stage.against == "teacher" else assistant
            # Encoders remember tokens; a fresh one knows none, as at the beginning of a run.
            frozen = Encoder(against.model, against.name, against.max_length)
            measured = measure(stage, student_of(shape, assistant, size), frozen, pairs, size.batch, ends, ways)
            facts = {"scale": scale, "data": "real" if data else "generated", "rounds": rounds, "steps": steps}
            rows = [
                {"case": name, "shape": shape, **row, **facts, "threads": threads, **provenance()}
                for epochs in (stage.budget.epochs, 1)
                for row in rows_of(*measured, steps * size.batch, epochs)
            ]
            append_rows(output, rows)
            shown += [[str(row[key]) for key in SHOWN] for row in rows]
    click.echo(markdown(list(SHOWN), shown, left=4))


if __name__ == "__main__":
    main()
