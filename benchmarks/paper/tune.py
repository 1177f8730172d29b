"""Does `metasearch tune` reach the manual recipe? Both train on the same labels and are scored on the same test part.

    python -m benchmarks.paper.tune --data ~/data --counts 32 --folds 0,1,2,3,4 -o studies/tune

Labels are questions and answers in four languages, as in transfer mode `mixt`. `tune` reads them as
rows, holds out folds of its own, and chooses a step and a ranking; the manual recipe is `best` in mode `mixt`, as in
docs/few-labels.md. Neither reads the test part. A finished cell adds a row to `results/tune.jsonl`, and a repeated
command skips it.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean

import click

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, by_keys, read_rows
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "tune.jsonl"
identity = by_keys("task", "encoder", "labels", "fold", "seed", "system")
POOLS = ("multilingual", "balanced", "expanded")
LANGUAGES = ("ar", "de", "el", "hi")
"""Languages of the labels, in which mode `mixt` asks and answers."""
STEPS, LARGEST = 12, 64
"""Outer steps, and examples of a set, of recipe `best`."""
SYSTEMS = ("base", "manual", "tune")
ALL = "all"


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="A retrieval task with mode mixt.")
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--encoder", default="mini-e5", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--counts", default="32,128,all", show_default=True, help="Labelled questions.")
@click.option("--folds", default="0,1,2,3,4", show_default=True, help="Which test folds.")
@click.option("--inner", default=5, show_default=True, help="Folds of the labels that tune holds out.")
@click.option("--systems", default=",".join(SYSTEMS), show_default=True, help="base, manual or tune.")
@click.option("--seed", default=0, show_default=True, help="Draws labels and episodes.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of the tunings.")
def main(
    task: str, data: str, encoder: str, counts: str, folds: str, inner: int, systems: str, seed: int, output: Path
) -> None:
    """Score each system with each number of labels on each fold, keep the rows, and print the table."""
    for fold in map(int, folds.split(",")):
        benchmark = ms.load_benchmark(task, mode="mixt", data=data, fold=fold)
        for count in counts.split(","):
            labels = draw_labels(benchmark, count, seed)
            for system in systems.split(","):
                facts: Row = {"task": task, "encoder": encoder, "labels": "0" if system == "base" else count}
                facts |= {"fold": fold, "seed": seed, "system": system}
                if any(identity(row) == identity(facts) for row in read_rows(ROWS)):
                    continue
                begun = time.process_time()
                if system == "tune":
                    name = f"{encoder}-{count}-{fold}-{seed}"
                    result = ms.tune(labels, output / name, encoder=encoder, folds=inner, seed=seed)
                    trained = result.encoder
                    kept = next(line for line in result.table if line["kept"])
                    facts |= {"kept": kept["step"], "pool": kept["pool"], "inner": inner}
                else:
                    trained = ms.load_encoder(encoder, benchmark.task.max_length)
                    if system == "manual":
                        train_by_hand(trained, benchmark, labels, count, seed)
                seconds = time.process_time() - begun
                scores = ms.evaluate(trained, benchmark.split.test, benchmark.measures, POOLS)
                means = {pool: round(scores.mean("map@20", pool), 6) for pool in POOLS}
                row = {**facts, "map@20": means, "cpu_seconds": round(seconds), **provenance()}
                append_new_rows(ROWS, [row], identity)
                click.echo(f"{facts}: {means}", err=True)
    click.echo(table(read_rows(ROWS), encoder))


def draw_labels(benchmark: ms.Benchmark, count: str, seed: int) -> ms.RetrievalData:
    """Return questions of the training and dev split, or some of the training split, with their answers alone."""
    parts = [benchmark.split.train, *([benchmark.split.dev] if count == ALL else [])]
    assert all(isinstance(part, ms.RetrievalData) for part in parts)
    questions = [each for part in parts for each in part.questions if each.language in LANGUAGES]  # type: ignore[union-attr]
    ids = sorted({question.id for question in questions})
    if count != ALL:
        Random(seed).shuffle(ids)
        ids = ids[: int(count)]
    known = set(ids)
    candidates = [
        replace(each, answers=tuple(own for own in each.answers if own in known))
        for part in parts
        for each in part.candidates  # type: ignore[union-attr]
        if each.language in LANGUAGES
    ]
    return ms.RetrievalData(
        tuple(each for each in questions if each.id in known), tuple(each for each in candidates if each.answers)
    )


def train_by_hand(
    encoder: ms.Encoder, benchmark: ms.Benchmark, labels: ms.RetrievalData, count: str, seed: int
) -> None:
    """Train an encoder with recipe `best`, whose sets are as large as the labels; the dev score decides nothing."""
    size = LARGEST if count == ALL else min(LARGEST, int(count))
    recipe = ms.load_recipe(
        "best",
        [f"episodes.k={size}", f"episodes.q={size}", f"budget.meta_train={STEPS}", "budget.meta_valid=0"],
    )
    split = replace(benchmark.split, train=labels, dev=labels.select(labels.groups[:4]))
    learner = ms.make_learner(recipe, encoder)
    ms.fit(learner, replace(benchmark, split=split), recipe, seed=seed)


def table(rows: Sequence[Row], encoder: str = "mini-e5") -> str:
    """Return a line for each number of labels, over the folds that all systems have."""
    own = [row for row in rows if row["encoder"] == encoder]
    lines = []
    for count in sorted({row["labels"] for row in own} - {"0"}, key=_order):
        cells = {(row["system"], row["fold"]): row for row in own if row["labels"] in ("0", count)}
        folds = [fold for fold in range(5) if all((system, fold) in cells for system in SYSTEMS)]
        if not folds:
            continue
        tuned = [cells["tune", fold] for fold in folds]
        manual = {pool: _mean(cells, "manual", folds, pool) for pool in POOLS}
        reached = 100 * fmean(row["map@20"][row["pool"]] for row in tuned)
        kept = Counter(f"{row['kept']}, {row['pool']}" for row in tuned)
        best = max(manual, key=lambda pool: manual[pool])
        lines.append(
            [
                count,
                ", ".join(map(str, folds)),
                f"{_mean(cells, 'base', folds, POOLS[0]):.1f}",
                f"{manual[best]:.1f} ({best})",
                f"{reached:.1f} ({'; '.join(f'{name} × {n}' for name, n in kept.items())})",
                f"{reached - manual[best]:+.1f}",
            ]
        )
    return markdown(
        ["labels", "test folds", "base encoder", "best manual", "tune (kept × folds)", "difference"], lines, left=0
    )


def _mean(cells: dict[tuple[str, int], Row], system: str, folds: Sequence[int], pool: str) -> float:
    return 100 * fmean(cells[system, fold]["map@20"][pool] for fold in folds)


def _order(count: str) -> tuple[bool, int]:
    return count == ALL, 0 if count == ALL else int(count)


if __name__ == "__main__":
    main()
