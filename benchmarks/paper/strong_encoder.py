"""The study of the MAML-Align paper with a strong encoder, `e5`: hours of work, done in as many sittings as it takes.

    python -m benchmarks.paper.strong_encoder --task lareqa-sentences --data ~/data --jobs 2 -o studies/e5
    python -m benchmarks.paper.strong_encoder --task lareqa-sentences --data ~/data --collect studies/other

A row of each finished cell is kept in `results/strong_encoder.jsonl`; a cell that has one is never run again, not even
where the folder of the study is gone. Each trained arm is scored as it is and with a map that takes the language out of
its vectors (`neutralise: after`). The rows of the arms, with intervals, are added to `results/main_table.jsonl`.
"""

import tempfile
from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, latest_rows, read_rows
from benchmarks.paper import cells, main_table
from benchmarks.paper.study_rows import study_rows
from benchmarks.paper.study_tables import changes_table, languages_table, orders_table, summary_table
from metasearch.spec.recipe import NEUTRAL, ZERO_SHOT

ENCODER = "e5"
CELLS = RESULTS / "strong_encoder.jsonl"
ARMS = (
    "fine-tune:mono-mono",
    "maml:trans",
    "maml-align:mono-bi-multi",
    "maml:mono-mono",
    "maml:mono-bi",
    "reptile:trans",
)
TEXTS = 150
"""Of each language, from which a map is fitted; 600 give a tenth of a point more and take four times as long."""


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="A retrieval task.")
@click.option("--arms", default=",".join(ARMS), show_default=True, help="Learners with their modes.")
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--folds", default="0,1,2,3,4", show_default=True, help="Which folds.")
@click.option("--seeds", default="0", show_default=True, help="Which seeds.")
@click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="bf16", show_default=True)
@click.option("--set", "assignments", multiple=True, metavar="[LEARNER:]KEY=VALUE", help="Of recipes; repeatable.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of each process.")
@click.option("--collect", type=click.Path(path_type=Path), help="Keep the finished cells of this study; run nothing.")
@click.option("--results", type=click.Path(path_type=Path), default=CELLS, help="Rows of cells to add to.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder of the studies.")
def main(
    task: str,
    arms: str,
    data: str,
    folds: str,
    seeds: str,
    precision: str,
    assignments: tuple[str, ...],
    jobs: int,
    threads: int,
    collect: Path | None,
    results: Path,
    output: Path | None,
) -> None:
    """Run the cells that have no row, keep their rows, and print the tables of all rows."""
    if (collect is None) == (output is None):
        raise click.UsageError("say -o DIR to run what is missing, or --collect STUDY")
    if collect is not None:
        _keep(collect, results)
    else:
        assert output is not None
        shared = ["--task", task, "--encoder", ENCODER, "--trim", "task", "--data", data, "--precision", precision]
        shared += ["--jobs", jobs, "--threads", threads, *(word for each in assignments for word in ("--set", each))]
        known = [row for row in read_rows(results) if row["task"] == task]
        wanted = [ZERO_SHOT, NEUTRAL, *arms.split(",")]
        for seed, fold, lacking in cells.missing(known, wanted, _numbers(folds), _numbers(seeds)):
            folder = output / f"{task}-fold-{fold}-seed-{seed}"
            what = ["--learner", ",".join(lacking), *_maps(lacking), "--folds", f"{fold},", "--seeds", seed]
            metasearch("crossval", *shared, *what, "-o", folder)
            _keep(folder, results)
    click.echo(_tables(task, data, results))


def _maps(arms: list[str]) -> list[str]:
    """Return the settings that give every arm a map: the trained ones after their training."""
    words = []
    for name in dict.fromkeys(arm.partition(":")[0] for arm in arms if arm != ZERO_SHOT):
        key = NEUTRAL if name == NEUTRAL else f"{name}:neutralise"
        words += [] if name == NEUTRAL else ["--set", f"{key}.when=after"]
        words += ["--set", f"{NEUTRAL}:texts={TEXTS}" if name == NEUTRAL else f"{key}.texts={TEXTS}"]
    return words


def _keep(folder: Path, results: Path) -> None:
    """Add the rows of a study's finished cells."""
    study = ms.read_study([folder])
    append_new_rows(results, [{**row, **provenance()} for row in cells.rows_of(study)], cells.identity)


def _tables(task: str, data: str, results: Path) -> str:
    """Return the tables of the arms that are on all folds, and keep a row of each; say which arms are not."""
    kept = [row for row in latest_rows(read_rows(results), cells.identity) if row["task"] == task]
    places: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for row in kept:
        places.setdefault((row["learner"], row["mode"]), set()).add((row["fold"], row["seed"]))
    folds = {fold for fold, _ in places[ZERO_SHOT, None]}
    begun = [arm for arm, done in places.items() if {fold for fold, _ in done} != folds]
    whole = [row for row in kept if (row["learner"], row["mode"]) not in begun]
    with tempfile.TemporaryDirectory() as folder:
        rows = study_rows(cells.restored(whole, data, Path(folder)), ENCODER)
    rows = [{**row, **_bias(row, whole), **provenance()} for row in rows]
    append_new_rows(RESULTS / "main_table.jsonl", rows, main_table.identity)
    tables = [languages_table(rows), summary_table(rows), changes_table(rows), orders_table(rows)]
    tables += [f"not on all folds yet: {learner} ({mode}), {len(places[learner, mode])}" for learner, mode in begun]
    return "\n\n".join(table for table in tables if table)


def _bias(row: Row, kept: list[Row]) -> Row:
    """Return the mean language bias of an arm's cells, which have no rankings to find it in again."""
    own = [each["bias"] for each in kept if (each["learner"], each["mode"]) == (row["learner"], row["mode"])]
    return {"bias": sum(own) / len(own), "bias_sd": None} if own and None not in own else {}


def _numbers(written: str) -> list[int]:
    return [int(word) for word in written.split(",")]


if __name__ == "__main__":
    main()
