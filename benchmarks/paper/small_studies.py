"""Small studies on dev: what rates, steps, meta-tasks, negatives and so on do to a learner. Test is never looked at.

    python -m benchmarks.paper.small_studies --task lareqa --encoder mini --data ~/data --learner maml:trans --jobs 2 \
        --axis outer.lr=1e-5,1e-4 --axis options.inner_lr=1e-3,1e-2 --max-steps 100 --set budget.dev_holdout=0.5
    python -m benchmarks.paper.small_studies --task lareqa --encoder mini --data ~/data --learner maml:trans --crossed \
        --axis outer.lr=1e-5,1e-4 --axis dropout=false,true
    python -m benchmarks.paper.small_studies --task lareqa --encoder mini --table

A point is a recipe with one change, or with `--crossed` one of each axis, trained on one fold with a dev score every
`--every` steps. Rows are appended to `results/small_studies.jsonl`; finished points never run again. As in the paper,
meta-valid episodes come from the questions of the dev score; `budget.dev_holdout` keeps some for the score alone.
"""

import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import torch

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.paper.grid import Point, points
from benchmarks.paper.small_study_tables import of_encoder, points_table, score
from metasearch.config.library import Library
from metasearch.errors import Interrupted, NonFiniteError
from metasearch.pipelines.factory import check_fit
from metasearch.runs.callbacks import Callback
from metasearch.runs.versions import versions

ROWS = RESULTS / "small_studies.jsonl"


@dataclass(frozen=True)
class Setting:
    """Settings of all points of a study, with the fingerprints of encoder and data."""

    task: str
    mode: str
    encoder: str
    fingerprint: str
    data: str
    fold: int
    seed: int
    max_steps: int


class Curve(Callback):
    """A callback that keeps the dev scores, `[step, score]`; step 0 is zero-shot."""

    def __init__(self) -> None:
        self.scores: list[tuple[int, float]] = []

    def on_dev(self, step: int, score: float, best: bool) -> None:
        """Keep a score."""
        self.scores.append((step, score))


def train_point(point: Point, setting: Setting, benchmark: ms.Benchmark, curve: Curve) -> str | None:
    """Train a point, and return the error that ended it, where its loss is not finite.

    Raises:
        Interrupted: it was asked to stop; there is no row of a part.
    """
    encoder = ms.load_encoder(setting.encoder, benchmark.task.max_length, device="cpu", seed=setting.seed)
    stage = point.recipe.neutralise
    if stage and stage.when == "before":
        ms.neutralise(encoder, benchmark, stage)
    learner = ms.make_learner(point.recipe, encoder)
    how = {"seed": setting.seed, "max_steps": setting.max_steps, "callback": curve}
    try:
        outcome = ms.fit(learner, benchmark, point.recipe, **how)
    except NonFiniteError as error:
        return str(error)
    if outcome.reason == "interrupted":
        raise Interrupted("stopped; the points that are done are kept. The same command goes on")
    return None


def measured(point: Point, setting: Setting, folder: str | None) -> Row:
    """Train a point and return its row; after a non-finite loss it has the scores so far and the error."""
    benchmark = ms.load_benchmark(setting.task, setting.mode, fold=setting.fold, data=folder)
    curve, began = Curve(), time.monotonic()
    error = train_point(point, setting, benchmark, curve)
    trained = [(score, -step) for step, score in curve.scores if step]
    best, at = max(trained, default=(None, None))
    return {
        **asdict(setting),
        "key": point.key(**asdict(setting)),
        "learner": point.recipe.learner,
        "axis": point.axis,
        "changes": list(point.changes),
        "recipe": point.recipe.model_dump(mode="json", exclude={"sources", "description"}),
        "measure": benchmark.task.monitor,
        "zero_shot": dict(curve.scores).get(0),
        "best": best,
        "best_step": None if at is None else -at,
        "curve": curve.scores,
        "error": error,
        "seconds": round(time.monotonic() - began, 1),
        "versions": versions(),
        **provenance(),
    }


def _begin(threads: int) -> None:
    # Ctrl-C reaches all processes; the first one says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch.set_num_threads(threads)


def run_all(around: list[Point], setting: Setting, folder: str | None, processes: int, path: Path) -> None:
    """Run the points that have no row yet, some at a time, each in a process of its own; append rows as they come."""
    done = {row["key"] for row in read_rows(path)}
    left = [point for point in around if point.key(**asdict(setting)) not in done]
    click.echo(f"{len(around)} points, {len(around) - len(left)} of them done", err=True)
    if processes == 1:
        for point in left:
            _keep(measured(point, setting, folder), path)
        return
    begin = (max(1, len(os.sched_getaffinity(0)) // processes),)
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, begin) as pool:
        waiting: list[Future[Row]] = [pool.submit(measured, point, setting, folder) for point in left]
        try:
            for ended in as_completed(waiting):
                _keep(ended.result(), path)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _keep(row: Row, path: Path) -> None:
    append_rows(path, [row])
    outcome = row["error"] or f"{score(row['best'])} at step {row['best_step']}"
    click.echo(f"{row['learner']} {', '.join(row['changes']) or 'base'}: {outcome}, {row['seconds']:.0f} s", err=True)


@click.command(cls=Command)
@click.option("--task", default="lareqa", show_default=True)
@click.option("--encoder", required=True, help="Built-in name, local folder or hub name.")
@click.option("--learner", "arms", multiple=True, metavar="NAME:MODE", help="Repeatable.")
@click.option("--axis", "axes", multiple=True, metavar="KEY=VALUE,VALUE", help="Repeatable.")
@click.option("--crossed", is_flag=True, help="All combinations of the axes, not one change at a time.")
@click.option("--set", "base", multiple=True, metavar="KEY=VALUE", help="Of all points; repeatable.")
@click.option("--max-steps", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--every", type=click.IntRange(min=1), help="Steps between dev scores; by default a quarter of all.")
@click.option("--fold", type=int, default=0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--jobs", "processes", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--data", envvar="METASEARCH_DATA", help="Folder of the task's files or a parent of it.")
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
@click.option("--table", "only_table", is_flag=True, help="Run nothing; print what is there.")
def main(
    task: str, encoder: str, arms: tuple[str, ...], results: Path, processes: int, only_table: bool, **scale: Any
) -> None:
    """Run what is left of the points of each learner, and print them, the best on dev first."""
    if not arms and not only_table:
        raise click.UsageError("--learner is missing, such as --learner maml:trans")
    fingerprint = None
    for arm in () if only_table else arms:
        learner, _, mode = arm.partition(":")
        if not mode:
            raise click.UsageError(f"--learner {arm}: expected a name and its mode, such as maml:trans")
        around, setting, folder = prepared(task, encoder, learner, mode, **scale)
        run_all(around, setting, folder, processes, results)
        fingerprint = setting.fingerprint
    rows = of_encoder(read_rows(results), task, encoder, fingerprint)
    click.echo(points_table([row for row in rows if not arms or f"{row['learner']}:{row['mode']}" in arms]))


def prepared(
    task: str,
    encoder: str,
    learner: str,
    mode: str,
    axes: tuple[str, ...],
    crossed: bool,
    base: tuple[str, ...],
    max_steps: int,
    every: int | None,
    fold: int,
    seed: int,
    data: str | None,
) -> tuple[list[Point], Setting, str | None]:
    """Return the points of a learner, each checked before any is run, their setting and the folder of the data."""
    declared = Library().task(task)
    folder = None if declared.data else data  # the texts of an embedded task lie beside it
    pace = [f"budget.eval_every={every or max(1, max_steps // 4)}", "budget.patience=0"]
    around = points(mode, encoder, learner, axes, [*pace, *base], crossed)
    benchmark = ms.load_benchmark(task, mode, fold=fold, data=folder)
    for point in around:
        check_fit(point.recipe, benchmark, "float32")
    weights = ms.load_encoder(encoder, declared.max_length, device="cpu", seed=seed).fingerprint
    return around, Setting(task, mode, encoder, weights, benchmark.data.fingerprint, fold, seed, max_steps), folder


if __name__ == "__main__":
    main()
