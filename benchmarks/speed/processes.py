"""How many times as many outer steps a second two processes take as one, both with a thread each and two shards.

    python -m benchmarks.speed.processes
    python -m benchmarks.speed.processes --case maml-align --rounds 1 --steps 3 -o rows.jsonl

The cases are MAML-Align with recipe `maml-align-mini` on the embedded task, and a stage of distillation, pairs of the
embedded texts with a contrast, both with the encoder `mini`. In each round one process and two take turns. A figure is
the median of the steps after the first; a row keeps the load of the machine, as a second process needs a core that is
free.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, latest_rows
from metasearch.data.benchmark import load_benchmark
from metasearch.data.translation import Translation
from metasearch.episodes.batches import Batches
from metasearch.jobs import compose
from metasearch.jobs.distill.target_store import stored_targets
from metasearch.learners.distill import Distill
from metasearch.runs.listener import Listener
from metasearch.runs.markdown import markdown
from metasearch.runs.rows import append_rows
from metasearch.spec.library import load_recipe, shipped
from metasearch.spec.recipe import Loss, Outer, Pace
from metasearch.training.processes import Processes, joined
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Trainer

SHARDS, BATCH = 2, 64


class Clock(Listener):
    """Notes when each step is done."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Note it."""
        self.at.append(time.perf_counter())


def maml_align(steps: int, processes: Processes, clock: Clock) -> Trainer:
    """Return what trains MAML-Align on the embedded task."""
    benchmark = load_benchmark("demo", "mono-bi-multi")
    recipe = load_recipe("maml-align-mini", [f"budget.shards={SHARDS}", "budget.eval_every=0", "budget.meta_valid=0"])
    learner = compose.make_learner(recipe, compose.load_encoder("mini", benchmark.task.max_length, device="cpu"))
    keys = {"max_steps": steps, "baseline": 0.0, "processes": processes, "listener": clock}
    return compose.trainer_of(learner, benchmark, recipe, **keys)  # type: ignore[arg-type]


def stage(steps: int, processes: Processes, clock: Clock) -> Trainer:
    """Return what trains `mini` on translations of the embedded texts, with its own vectors as targets."""
    texts = {code: _texts(code) for code in ("en", "de", "tr", "el")}
    pairs = [
        Translation(source, target, ("en", code))
        for code in texts
        if code != "en"
        for source, target in zip(texts["en"], texts[code], strict=True)
    ]
    encoder = compose.load_encoder("mini", device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        targets = stored_targets(Path(folder), encoder, texts["en"], "text", "pooled")
    learner = Distill(encoder, Loss(), Distill.Options(contrast="soft"), targets)
    batches = Batches(pairs, encoder.lengths([pair.target for pair in pairs], "text"), BATCH, seed=0)
    plan = Schedule((Phase("train", batches, steps),), steps, BATCH)
    gradients, pace = compose.make_gradients(encoder), Pace(eval_every=0, patience=0, shards=SHARDS)
    return Trainer(learner, gradients, plan, Outer(lr=1e-5), pace, lambda: 0.0, clock, processes=processes)


def _texts(code: str) -> list[str]:
    lines = (shipped() / "demo" / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
    return [text for article in map(json.loads, lines) for text in article["sentences"]]


CASES = {"maml-align": maml_align, "stage": stage}


@click.command(cls=Command)
@click.option("--case", "cases", type=click.Choice(list(CASES)), multiple=True, default=tuple(CASES))
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--steps", type=click.IntRange(min=2), default=12, show_default=True, help="The first is not timed.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=RESULTS / "processes.jsonl")
@click.option("--measure", is_flag=True, hidden=True, help="Take the steps in this process, and write their times.")
def main(cases: Sequence[str], rounds: int, steps: int, output: Path, measure: bool) -> None:
    """Measure, add rows to OUTPUT and print them."""
    if measure:
        _measure(cases[0], steps, output)
        return
    rows = []
    for case in cases:
        taken = [{count: _seconds(count, case, steps) for count in (1, 2)} for _ in range(rounds)]
        rows.append(_row(case, steps, taken))
        append_rows(output, rows[-1:])
    click.echo(processes_table(rows))


def _measure(case: str, steps: int, output: Path) -> None:
    processes, clock = joined(), Clock()
    CASES[case](steps, processes, clock).fit()
    if processes.first:
        output.write_text(json.dumps([later - now for now, later in pairwise(clock.at)]), encoding="utf-8")
    processes.end()


def _seconds(count: int, case: str, steps: int) -> float:
    """Return the median time of a step in so many processes."""
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}", "-m"] if count > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seconds.json"
        script = ["benchmarks.speed.processes", "--measure", "--case", case, "--steps", str(steps), "-o", str(out)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", *torchrun, *script], env=environment, check=True, stdout=2)
        return statistics.median(json.loads(out.read_text(encoding="utf-8")))


def _row(case: str, steps: int, taken: Sequence[dict[int, float]]) -> Row:
    ratios = [round(seconds[1] / seconds[2], 3) for seconds in taken]
    medians = {f"seconds_{count}": round(statistics.median(one[count] for one in taken), 4) for count in (1, 2)}
    value = {"value": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
    return {"case": case, "shards": SHARDS, "steps": steps, "rounds": len(taken), **value, **medians, **provenance()}


def processes_table(rows: Sequence[Row]) -> str:
    """Return how many times as many steps a second two processes take, by the last row of each case."""
    lines = [
        [
            row["case"],
            f"{row['seconds_1']:.2f}",
            f"{row['seconds_2']:.2f}",
            f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
            f"{row['rounds']}",
            f"{row['machine']['load']} on {row['machine']['cores']} cores",
        ]
        for row in latest_rows(rows, lambda row: row["case"])
    ]
    heads = ["case", "seconds a step, one process", "two", "times as many steps a second", "rounds", "load"]
    return markdown(heads, lines)


if __name__ == "__main__":
    main()
