"""What the distillation of MAML-Align does: all learners in one arrangement, and larger forms of the term.

    python -m benchmarks.paper.alignment --data ~/data --part curves --device cuda -o studies/alignment
    python -m benchmarks.paper.alignment --data ~/data --encoder mini --trained projection -o studies/alignment

Every cell trains an encoder through a projection, in the mode `mono-bi-multi` of `lareqa-sentences`, at a constant
rate. `--trained projection` trains the projection alone, on vectors that are computed once (`frozen_encoder`): seconds
a cell. Rows are kept in `results/alignment.jsonl` as they come, and no cell is run again.

With all weights, `curves` and `variants` score dev of fold 0, `main` and `labels` test on five folds with three seeds.
With the projection alone, `grid` scores dev of fold 0 after 1, 2, 4 … steps at several rates. The other parts train
each variant at the rate and for the number of steps that are best there, and score test on five folds with three seeds.
`longer-grid` and `longer` do the same with InfoNCE, lower rates and more steps.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean

import click
import torch
from torch import Tensor

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.rows import Row, append_new_rows, read_rows
from benchmarks.learners import register
from benchmarks.paper.alignment_cells import PARTS, ROWS, Cell, cells, key_of, projection_cells
from benchmarks.paper.frozen_encoder import frozen_encoder
from metasearch.data.benchmark import Benchmark
from metasearch.encoders.device import device_of
from metasearch.errors import Interrupted
from metasearch.pipelines.factory import DevEvaluator
from metasearch.runs.callbacks import Callback
from metasearch.runs.versions import versions


class Curve(Callback):
    """Keeps the dev scores by step, and the share of the distillation term in each step."""

    def __init__(self) -> None:
        self.dev: dict[int, float] = {}
        self.shares: list[float] = []

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Keep the share."""
        self.shares += [terms["kd_share"]] if "kd_share" in terms else []

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Keep the score after 0, 1, 2, 4 … steps; others are not taken."""
        if is_scored(step):
            self.dev[step] = score


def is_scored(step: int) -> bool:
    """Return whether a curve has a score after this step: 0 and powers of two."""
    return step & (step - 1) == 0


@dataclass
class Bench:
    """The benchmark and the untrained encoder of a fold, shared by its cells."""

    data: str
    folder: Path
    device: str
    encoder_name: str
    trained: str
    fold: int
    _start: dict[str, Tensor] = field(default_factory=dict)

    @cached_property
    def benchmark(self) -> Benchmark:
        """The fold."""
        return ms.load_benchmark("lareqa-sentences", "mono-bi-multi", fold=self.fold, data=self.data)

    @cached_property
    def encoder(self) -> ms.Encoder:
        """The encoder with its projection."""
        if self.trained == "projection":
            encoder = frozen_encoder(self.encoder_name, self.benchmark, self.folder, device_of(self.device))
        else:
            encoder = ms.load_encoder(self.encoder_name, self.benchmark.task.max_length, device=self.device)
        stage = Cell("fine-tune", "infonce", 1.0, 2).recipe.neutralise
        assert stage
        ms.neutralise(encoder, self.benchmark, stage)
        self._start = {n: p.detach().clone() for n, p in encoder.embedder.named_parameters() if p.requires_grad}
        return encoder

    @cached_property
    def untrained(self) -> dict[str, float]:
        """Scores of the projection alone on test."""
        return self.test()

    def test(self) -> dict[str, float]:
        """Return the scores of the encoder on test: language, or `mean` → mAP@20."""
        measures = [measure for measure in self.benchmark.measures if str(measure) == "map@20"]
        found = ms.evaluate(self.encoder, self.benchmark.split.test, measures)
        by_language = {score.language: round(score.value, 6) for score in found.scores}
        return {**by_language, "mean": round(found.mean("map@20"), 6)}

    def train(self, cell: Cell) -> Row:
        """Train a cell from the start, and return its row."""
        encoder, recipe, began = self.encoder, cell.recipe, time.monotonic()
        untrained = {} if cell.dev else self.untrained
        self._reset()
        curve, scores = Curve(), DevEvaluator(encoder, self.benchmark, recipe)
        steps = iter(range(cell.steps + 1))
        # Without dev scores the last weights are kept.
        dev = (lambda: scores() if is_scored(next(steps)) else -1.0) if cell.dev else (lambda: 0.0)
        learner = ms.make_learner(recipe, encoder)
        outcome = ms.fit(learner, self.benchmark, recipe, seed=cell.seed, callback=curve, dev=dev)  # type: ignore[arg-type]
        if outcome.reason == "interrupted":
            raise Interrupted("stopped; finished cells are kept, and the same command continues")
        return {
            **{name: value for name, value in asdict(cell).items() if name != "dev"},
            "set": cell.settings,
            "dev": {str(step): round(score, 6) for step, score in curve.dev.items()} if cell.dev else {},
            "test": {} if cell.dev else self.test(),
            "untrained": untrained,
            "kd_share": fmean(curve.shares) if curve.shares else None,
            "seconds": round(time.monotonic() - began, 1),
            "device": str(encoder.device),
            "versions": versions(),
        }

    @torch.no_grad()
    def _reset(self) -> None:
        weights: Mapping[str, Tensor] = dict(self.encoder.embedder.named_parameters())
        for name, value in self._start.items():
            weights[name].copy_(value)


@click.command(cls=Command)
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--part", "parts", multiple=True, help="Which cells, by default all; repeatable.")
@click.option("--encoder", default="e5", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--trained", type=click.Choice(list(PARTS)), default="all", show_default=True, help="Which weights.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of vectors.")
def main(data: str, parts: Sequence[str], encoder: str, trained: str, device: str, output: Path) -> None:
    """Run the cells that have no row yet; `python -m benchmarks.tables` writes the tables."""
    register()
    unknown = set(parts) - set(PARTS[trained])
    if unknown:
        raise click.UsageError(f"--part {min(unknown)}: with --trained {trained} there are {', '.join(PARTS[trained])}")
    benches: dict[int, Bench] = {}
    for part in parts or PARTS[trained]:
        for cell in cells(part) if trained == "all" else projection_cells(part, encoder, read_rows(ROWS)):
            # Read each time: another process may run other parts.
            if cell.key in {key_of(row) for row in read_rows(ROWS)}:
                continue
            bench = benches.setdefault(cell.fold, Bench(data, output, device, encoder, trained, cell.fold))
            row = bench.train(cell)
            append_new_rows(ROWS, [row], key_of)
            click.echo(f"{part}: {', '.join(map(str, cell.key))}: {row['seconds']} s", err=True)


if __name__ == "__main__":
    main()
