"""How far a few labels go: recipe `best` with so many questions of each language, from 8 on.

    python -m benchmarks.paper.labels --data ~/data --counts 8,32,128 --jobs 2 -o studies/labels
    python -m benchmarks.paper.labels --data ~/data --aligned studies/aligned/model --counts 8,32,128 -o studies/labels

The first starts from `e5` with a projection (`neutral`), the second from the encoder of `benchmarks.paper.aligned`. The
seed draws labels of train alone; sets are as large as the labels, and at most 64. The same command continues a stopped
study. Each fold adds a row to `results/labels.jsonl`. Lines without labels and with all of them come from
`results/strong_encoder.jsonl`; all labels include the dev part.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import metasearch as ms
from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, by_keys, latest_rows, read_rows
from benchmarks.paper import cells
from benchmarks.paper.fold_rows import by_fold, fold_row, gain, mean_of, spread
from benchmarks.paper.strong_encoder import CELLS, TEXTS
from benchmarks.paper.study_rows import groups_of
from metasearch.config import yaml
from metasearch.config.library import Library
from metasearch.config.measure import REORDERED
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.encoders.load import load_encoder
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "labels.jsonl"
identity = by_keys("task", "mode", "start", "weights", "labels", "settings", "fold", "seed", "measure", "pool")
LARGEST = 64
"""Examples of a set, of recipe `best`."""
STEPS = 12
"""All of them on train, as those on dev would read its labels."""


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="A retrieval task.")
@click.option("--mode", default="mixt", show_default=True, help="Transfer mode.")
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--aligned", type=click.Path(exists=True), help="Encoder of `benchmarks.paper.aligned`; by default e5.")
@click.option("--counts", default="8,32,128", show_default=True, help="Labelled questions of each language.")
@click.option("--folds", default="0,1,2,3,4", show_default=True, help="Which folds.")
@click.option("--seed", default=0, show_default=True, help="Draws labels and episodes.")
@click.option("--precision", type=click.Choice(["float32", "bfloat16"]), default="bfloat16", show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of the studies.")
def main(
    task: str,
    mode: str,
    data: str,
    aligned: str | None,
    counts: str,
    folds: str,
    seed: int,
    precision: str,
    jobs: int,
    output: Path,
) -> None:
    """Train with each number of labels on each fold, keep the rows, and print the table of all."""
    start = cells.ALIGNED if aligned else NEUTRAL
    weights = load_encoder(aligned).fingerprint if aligned else None
    recipes = [declare(output, int(count), start) for count in counts.split(",")]
    metasearch(
        "crossval", "--task", task, "--trim-vocab", "task", "--data", data, "--precision", precision, "--jobs", jobs,
        "--encoder", aligned or cells.ENCODER, "--folds", f"{folds},", "--seeds", seed, "--include", output / "tasks",
        "--learner", ZERO_SHOT, "--recipe", ",".join(f"{recipe}:{mode}" for recipe in recipes),
        "-o", output / f"{task}-{start}",
    )  # fmt: skip
    study = ms.read_study([output / f"{task}-{start}"])
    found = cells.rows_of_pools(study, start, weights)
    trained = [row for row in found if row["learner"] != ZERO_SHOT]
    rows = [{**row_of(row, int(row["config"]["recipe"]["labels"])), **provenance()} for row in trained]
    append_new_rows(ROWS, rows, identity)
    click.echo(table(read_rows(ROWS), read_rows(CELLS), task, mode))


def declare(folder: Path, count: int, start: str) -> str:
    """Write recipe `best` for a number of labels to a folder's `tasks/recipes`, and return its name."""
    size = min(count, LARGEST)
    changes: dict[str, Any] = {"labels": count, "episodes": {"k": size, "q": size}}
    changes |= {"budget": {"meta_train": STEPS, "meta_valid": 0}}
    changes |= {} if start == cells.ALIGNED else {"neutralise": {"when": "before", "texts": TEXTS}}
    name = f"{cells.BEST}-{start}-{count}"
    recipe = Library().recipe(cells.BEST, changes).model_copy(update={"recipe": name})
    path = folder / "tasks" / "recipes" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(recipe.model_dump(mode="json")), encoding="utf-8")
    return name


def row_of(row: Row, count: int | None) -> Row:
    """Return a cell with means of languages in place of questions; `count` None are all labels."""
    return fold_row(row, start=row["encoder"], weights=row.get("weights"), labels=count)


def table(rows: Sequence[Row], whole: Sequence[Row], task: str, mode: str = "mixt") -> str:
    """Return a line of each encoder and number of labels, of the last settings.

    `whole` are cells of the study with all labels and with none.
    """
    groups = groups_of(Library().task(task), sorted({code for row in rows for code in row["languages"]}))
    pools = [pool for pool in REORDERED if pool in {row["pool"] for row in rows}]
    lines = []
    for start in (NEUTRAL, cells.ALIGNED):
        own = [row for row in rows if (row["task"], row["mode"], row["start"]) == (task, mode, start)]
        if not own:
            continue
        # Of several aligned encoders the last one, and of a cell that was done with several settings the last of these.
        own = [row for row in own if row["weights"] == own[-1]["weights"]]
        own = latest_rows(own, by_keys("labels", "fold", "seed", "pool"))
        known = [row for row in whole if row["task"] == task and row.get("weights") == own[-1]["weights"]]
        seeds = {row["seed"] for row in own}
        own += [row_of(row, 0) for row in known if cells.find_arm(row) == start]
        trained = [
            row for row in known if cells.find_arm(row) == f"{start}+{cells.BEST}:{mode}" and row["seed"] in seeds
        ]
        own += [row_of(row, None) for row in trained]
        for count in sorted({row["labels"] for row in own}, key=lambda count: (count is None, count)):
            lines.append(
                [start, "all" if count is None else f"{count}", *_figures(own, count, list(groups.values()), pools)]
            )
    names = [f"{name} languages" for name in groups]
    return markdown(["encoder", "labels", "mAP@20", "Δ vs no labels [95 % CI]", *names, *pools], lines, left=1)


def _figures(
    rows: Sequence[Row], count: int | None, groups: Sequence[Sequence[str]], pools: Sequence[str]
) -> list[str]:
    """Return the columns of a number of labels: mean and deviation over folds, gain, groups, reranked pools."""
    own = [row for row in rows if row["labels"] == count]
    return [
        spread(list(by_fold(own).values())),
        "" if count == 0 else gain(own, [row for row in rows if row["labels"] == 0]),
        *(mean_of(own, codes) for codes in groups),
        *(spread(list(by_fold(own, pool).values())) for pool in pools),
    ]


if __name__ == "__main__":
    main()
