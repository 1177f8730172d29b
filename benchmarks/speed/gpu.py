"""Outer steps on a GPU, beside learn2learn and sentence-transformers.

    python -m benchmarks.speed.gpu --data ~/data
    python -m benchmarks.speed.gpu --data ~/data --encoder e5 --rounds 9
    python -m benchmarks.speed.gpu --scale small --device cpu --encoder tiny --rounds 1    # that it runs, in seconds

First-order MAML of the paper's sets in bfloat16 (autocast), with layers kept and computed again on the way back, beside
learn2learn's plain loop in bfloat16; and fine-tuning on the same triplets beside the step of sentence-transformers'
Trainer with its TripletLoss, in bfloat16 and with the fused AdamW. Ways take turns on the same meta-batches; medians
of the rounds.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import torch
from sentence_transformers.sentence_transformer.losses import TripletLoss
from sentence_transformers.util import batch_to_device

from benchmarks.common.clock import Seconds
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows
from benchmarks.speed.race import WAYS, Job, Runner
from benchmarks.speed.shapes import SCALES, Setting, encoder_of
from metasearch.encoders.device import device_of
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode
from metasearch.runs.markdown import markdown

SHOWN = ("case", "way", "seconds", "times", "memory_mib")


class TripletTrainer:
    """The step of sentence-transformers' Trainer on the triplets of a meta-batch, texts tokenised in every step."""

    def __init__(self, setting: Setting, encoder: Encoder, batches: Sequence[list[Episode]]) -> None:
        self.encoder, self.batches, self.clip = encoder, batches, setting.recipe.outer.clip
        self.loss = TripletLoss(encoder.model)
        self.parameters = dict(encoder.embedder.named_parameters())
        outer = setting.recipe.outer
        settings: dict[str, Any] = {"lr": outer.lr, "eps": outer.eps, "weight_decay": outer.weight_decay}
        self.optimizer = torch.optim.AdamW(self.parameters.values(), **settings, fused=True)

    def step(self, number: int) -> None:
        """Take the step of a meta-batch."""
        triplets = [t for episode in self.batches[number] for examples in episode.sets for t in examples.examples]
        columns = zip(*((t.question.text, t.positive.text, t.negative.text) for t in triplets), strict=True)
        features = [self.encoder.model.preprocess(list(column)) for column in columns]
        moved = [batch_to_device(each, self.encoder.device) for each in features]
        torch.autograd.backward(self.loss(moved, torch.empty(0)))
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.clip or float("inf"))
        self.optimizer.step()
        self.optimizer.zero_grad()


WAYS["sentence-transformers"] = TripletTrainer
CASES = {
    "maml": ("bf16", "bf16 checkpointing", "learn2learn"),
    "fine-tune": ("bf16", "sentence-transformers"),
}
PEERS = ("learn2learn", "sentence-transformers")


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", help="Folder of the data sets.")
@click.option(
    "--encoder", default="XLMR", show_default=True, help="XLMR, random weights of that shape, or any encoder."
)
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True)
@click.option("--case", "cases", type=click.Choice(list(CASES)), multiple=True, default=tuple(CASES))
@click.option("--scale", type=click.Choice(list(SCALES)), default="full", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=RESULTS / "gpu.jsonl", help="Rows to add to.")
def main(
    data: str | None, encoder: str, device: Any, cases: Sequence[str], scale: str, rounds: int, output: Path
) -> None:
    """Measure the cases, keep their rows as soon as they are there, and print the table."""
    device_of(device)  # an error where there is no GPU
    shown: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        given = encoder_of(scale, encoder, Path(folder), data) if encoder in SCALES[scale].shapes else encoder
        for case in cases:
            setting = Setting.of(scale, "XLMR", given, case, rounds, data=data, device=device)
            rows = [{**row, "encoder": encoder, "scale": scale, **provenance()} for row in measured(case, setting)]
            append_rows(output, rows)
            shown += rows
    click.echo(markdown(list(SHOWN), [[str(row[key]) for key in SHOWN] for row in shown], left=2))


def measured(case: str, setting: Setting) -> list[Row]:
    """Return the rows of a case, one for each way: seconds per step, their ratio to ours, and peak GPU memory."""
    ready, memory, seconds = {}, {}, {way: list[Seconds]() for way in CASES[case]}
    cuda = setting.device == "cuda"
    for way in CASES[case]:
        ready[way] = Runner(Job(way, setting, torch.get_num_threads()))
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() if cuda else 0
        _step(ready[way], way)  # warms up
        memory[way] = (torch.cuda.max_memory_allocated() - before) / 2**20 if cuda else None
    for number in range(setting.batches - 1):
        for way in CASES[case] if number % 2 == 0 else CASES[case][::-1]:
            seconds[way].append(_step(ready[way], way))
    return [
        {
            "case": case,
            "way": way,
            "seconds": round(median(wall for wall, _ in seconds[way]), 4),
            "times": round(median(a[0] / b[0] for a, b in zip(seconds[way], seconds["bf16"], strict=True)), 3),
            "memory_mib": memory[way] and round(memory[way]),
            "device": torch.cuda.get_device_name() if cuda else "cpu",
            "rounds": setting.batches - 1,
        }
        for way in CASES[case]
    ]


def _step(runner: Runner, way: str) -> Seconds:
    """Take a step; peers have no precision of their own."""
    with torch.autocast(runner.encoder.device.type, torch.bfloat16, enabled=way in PEERS):
        return runner.step()


if __name__ == "__main__":
    main()
