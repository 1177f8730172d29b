"""The papers' question with frozen encoders: do learners teach a query adapter more than fine-tuning does?

    python -m benchmarks.paper.adaptation --data ~/data -o studies/adaptation

Adapters of `e5` are trained with each learner on the arrangements of the papers (`adapter_cells`). Rates are the best
of one grid on the dev part of each fold, and test is scored with many seeds. Vectors go through a projection that is
estimated without labels, and are computed once: a training takes a second. Finished cells have rows in `results/`, and
are not run again.
"""

import time
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean

import click

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import Row, append_rows, read_rows
from benchmarks.learners import register
from benchmarks.paper.adapter_cells import CHAIN, FOLDS, LEARNERS, ROWS, STOPPED, Cell, key_of, search, test_cells
from metasearch.config.projection import ProjectionSettings
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import SimilarityData
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import CachedEncoder, TextEncoder
from metasearch.errors import Interrupted
from metasearch.pipelines.frozen import encode_once
from metasearch.pipelines.neutral import train_projection
from metasearch.runs.callbacks import Callback

ENCODER = "e5"


class Shares(Callback):
    """Keeps the share of the distillation term in each step."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Keep the share."""
        self.found += [terms["kd_share"]] if "kd_share" in terms else []


@dataclass
class Bench:
    """A task with its vectors, shared by its cells."""

    task: str
    data: str
    folder: Path
    _folds: dict[tuple[int, str], Benchmark] = field(default_factory=dict)
    _projected: dict[int, TextEncoder] = field(default_factory=dict)
    _untrained: dict[int, Row] = field(default_factory=dict)
    _before: dict[int, float] = field(default_factory=dict)

    @cached_property
    def encoder(self) -> ms.Encoder:
        """The frozen encoder."""
        return ms.load_encoder(ENCODER, self.fold(0).task.max_length, device="cpu")

    @cached_property
    def vectors(self) -> CachedEncoder:
        """Its vectors of all texts."""
        return encode_once(self.encoder, (self.fold(0).data,), self.folder / "vectors")

    def fold(self, fold: int, mode: str = CHAIN) -> Benchmark:
        """Return a fold in a mode, with the measure that the task is monitored by alone."""
        if (fold, mode) not in self._folds:
            found = ms.load_benchmark(self.task, mode, fold=fold, data=self.data)
            measures = tuple(each for each in found.measures if str(each) == found.task.monitor)
            self._folds[fold, mode] = replace(found, measures=measures)
        return self._folds[fold, mode]

    def adapted(self, fold: int) -> AdaptedEncoder:
        """Return the encoder with the projection of a fold, from the texts of train, and a new adapter."""
        benchmark = self.fold(fold)
        if fold not in self._projected:
            neutral = train_projection(self.encoder, benchmark, ProjectionSettings(), through=self.vectors)
            self._projected[fold] = CachedEncoder(ProjectedEncoder(self.vectors, neutral))
        adapter = MatrixAdapter(self.encoder.dimension())
        pairs = isinstance(benchmark.data, SimilarityData)
        return AdaptedEncoder(self.encoder, adapter, pairs, self._projected[fold])

    def test(self, encoder: AdaptedEncoder, fold: int) -> Row:
        """Return the scores on test: language or pair, or `mean` → score."""
        benchmark = self.fold(fold)
        found = ms.evaluate(encoder, benchmark.split.test, benchmark.measures)
        by_language = {score.language: round(score.value, 6) for score in found.scores}
        return {**by_language, "mean": round(found.mean(benchmark.task.monitor), 6)}

    def train(self, cell: Cell) -> Row:
        """Train a cell, and return its row."""
        encoder, began, shares = self.adapted(cell.fold), time.perf_counter(), Shares()
        if cell.test and cell.fold not in self._untrained:
            self._untrained[cell.fold] = self.test(encoder, cell.fold)
        benchmark, recipe = self.fold(cell.fold, cell.mode), cell.recipe
        learner, before = ms.make_learner(recipe, encoder), self._before.get(cell.fold)
        outcome = ms.fit(learner, benchmark, recipe, seed=cell.seed, callback=shares, baseline=before)
        if outcome.reason == "interrupted":
            raise Interrupted(STOPPED)
        assert outcome.best_score is not None
        assert outcome.baseline is not None
        self._before[cell.fold] = outcome.baseline
        return {
            **asdict(cell),
            "test": self.test(encoder, cell.fold) if cell.test else {},
            "untrained": self._untrained[cell.fold] if cell.test else {},
            "dev": round(outcome.best_score, 6),
            "dev before": round(outcome.baseline, 6),
            "step": outcome.best_step,
            "kd_share": fmean(shares.found) if shares.found else None,
            "seconds": round(time.perf_counter() - began, 2),
        }


def run_learners(bench: Bench, seeds: int, mode_seeds: int, facts: Row) -> None:
    """Choose the rates of a task, and score test; keep a row of each cell that has none yet."""
    known = {key_of(row): row for row in read_rows(ROWS)}

    def train(cell: Cell) -> Row:
        if cell.key not in known:
            known[cell.key] = {**bench.train(cell), **facts}
            append_rows(ROWS, [known[cell.key]])
        return known[cell.key]

    for fold, variant in product(FOLDS, LEARNERS):
        search(lambda o, i, v=variant, f=fold: train(Cell(bench.task, v, f, o, i))["dev"], variant != "fine-tune")  # type: ignore[misc]
    for cell in test_cells([*known.values()], bench.task, range(seeds), range(mode_seeds)):
        train(cell)


@click.command(cls=Command)
@click.option("--data", required=True, help="Folder of the tasks' files or a parent of it.")
@click.option("--tasks", default="lareqa-sentences,stsb", show_default=True, help="Tasks.")
@click.option("--seeds", default=20, show_default=True, help="Seeds in mode mono-bi-multi.")
@click.option("--mode-seeds", default=3, show_default=True, help="Seeds in other modes.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of vectors.")
def main(data: str, tasks: str, seeds: int, mode_seeds: int, output: Path) -> None:
    """Run the cells that have no row yet; `python -m benchmarks.tables` writes the tables."""
    register()
    facts = provenance()
    for task in tasks.split(","):
        run_learners(Bench(task, data, output), seeds, mode_seeds, facts)


if __name__ == "__main__":
    main()
