"""What else a few labels can do: rivals of fine-tuning and MAML, each changed in one respect, with encoder `e5`.

    python -m benchmarks.paper.rivals --data ~/data --rivals jsd,translate-train --jobs 2 -o studies/rivals

All train through a map that takes the language out of the vectors (`neutralise: before`), with the sets and steps of
`benchmarks.paper.strong_encoder`, whose rows have the learners that they are compared with. A row of each fold is kept
in `results/rivals.jsonl`. The same command goes on with what has no row yet, on any machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, by_keys, latest_rows, read_rows
from benchmarks.paper import cells
from benchmarks.paper.fold_rows import MAIN, by_fold, fold_row, gain, mean_of, spread
from benchmarks.paper.strong_encoder import CELLS, SETS, TEXTS
from benchmarks.paper.study_rows import groups_of
from metasearch.config import yaml
from metasearch.config.library import Library, load_recipe
from metasearch.config.measure import REORDERED
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.errors import require_known
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "rivals.jsonl"
identity = by_keys("task", "mode", "rival", "settings", "fold", "seed", "measure", "pool")
TASK = "lareqa-sentences"
DECLARED = Path(__file__).parents[1] / "tasks"
"""Of `lareqa-sentences-german`."""


@dataclass(frozen=True)
class Rival:
    """A training with one change, and its baseline.

    Attributes:
        says: description in the table.
        settings: changes of the recipe, as of `--set`.
        task: a task with the test part of `TASK`.
        against: the baseline: a rival, or an arm of `results/strong_encoder.jsonl`.
    """

    says: str
    recipe: str
    mode: str
    settings: tuple[str, ...]
    task: str = TASK
    against: str = "neutral+fine-tune:trans"


# Episodes of meta-valid would read labels of dev in the other languages.
_TRAIN_ALONE = ("budget.meta_train=32", "budget.meta_valid=0")
_MAML = "neutral+maml:trans"
ARMS = (NEUTRAL, "neutral+fine-tune:trans", _MAML)
"""Of `results/strong_encoder.jsonl`, with which rivals are compared."""
RIVALS = {
    "german": Rival(
        "fine-tuning, labels in German alone", "fine-tune-e5", "mono-mono", _TRAIN_ALONE,
        task=f"{TASK}-german", against=NEUTRAL,
    ),
    "translate-train": Rival(
        "the same and their translations (T-Train, by the oracle)", "fine-tune-e5", "mono-mono", _TRAIN_ALONE,
        task=f"{TASK}-oracle", against="german",
    ),
    "translate-train-maml": Rival(
        "T-Train with MAML", "maml-e5", "mono-mono", _TRAIN_ALONE,
        task=f"{TASK}-oracle", against="translate-train",
    ),
    "translate-train-maml-align": Rival(
        "T-Train with MAML-Align", "maml-align-e5", "mono-bi-multi", _TRAIN_ALONE,
        task=f"{TASK}-oracle", against="translate-train",
    ),
    "jsd": Rival(
        "fine-tuning, translated questions aligned by JSD", "fine-tune-e5", "trans",
        ("episodes.translations=true", "loss.align=jsd"),
    ),
    "align": Rival(
        "fine-tuning, translated questions aligned by InfoNCE", "fine-tune-e5", "trans",
        ("episodes.translations=true", "loss.align=infonce"),
    ),
    "mined": Rival("fine-tuning, mined negatives", "fine-tune-e5", "trans", ("episodes.negatives=mined",)),
}  # fmt: skip


@click.command(cls=Command)
@click.option("--data", required=True, help="Folder of the tasks' files or a parent of it.")
@click.option("--rivals", default=",".join(RIVALS), show_default=True, help="Which.")
@click.option("--folds", default="0,1,2,3,4", show_default=True, help="Which folds.")
@click.option("--seed", default=0, show_default=True, help="Draws episodes.")
@click.option("--precision", type=click.Choice(["float32", "bfloat16"]), default="bfloat16", show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of the studies.")
def main(data: str, rivals: str, folds: str, seed: int, precision: str, jobs: int, output: Path) -> None:
    """Train each rival on each fold, keep the rows, and print the table of all."""
    named = rivals.split(",")
    for name in named:
        require_known("rival", name, RIVALS)
    shared = ("--trim-vocab", "task", "--data", data, "--precision", precision, "--jobs", jobs)
    shared += ("--encoder", cells.ENCODER)
    for own, places in missing(read_rows(ROWS), named, [int(fold) for fold in folds.split(",")], seed):
        task = RIVALS[own[0]].task
        folder = output / "-".join((task, *own))
        recipes = [f"{declare(output, name)}:{RIVALS[name].mode}" for name in own]
        try:
            metasearch(
                "crossval", "--task", task, *shared, "--folds", ",".join(map(str, places)) + ",", "--seeds", seed,
                "--include", output / "tasks", "--include", DECLARED,
                "--learner", ZERO_SHOT, "--recipe", ",".join(recipes), "-o", folder,
            )  # fmt: skip
        finally:
            _keep(folder)
    click.echo(table(read_rows(ROWS), read_rows(CELLS)))


def missing(
    rows: Sequence[Row], named: Sequence[str], folds: Sequence[int], seed: int
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Return rivals of one task that have no row, with the folds that lack just these, in the order to do them in."""
    known = {(row["rival"], row["fold"]) for row in rows if row["seed"] == seed}
    groups: dict[tuple[str, ...], list[int]] = {}
    for task in dict.fromkeys(RIVALS[name].task for name in named):
        own = [name for name in named if RIVALS[name].task == task]
        for fold in folds:
            if lacking := tuple(name for name in own if (name, fold) not in known):
                groups.setdefault(lacking, []).append(fold)
    return list(groups.items())


def declare(folder: Path, name: str) -> str:
    """Write the recipe of a rival to a folder's `tasks/recipes`, and return its name."""
    rival = RIVALS[name]
    # No dev score before training: the same weights have one in every cell.
    shared = (*SETS, f"neutralise.texts={TEXTS}", "neutralise.when=before", "budget.eval_every=0")
    recipe = load_recipe(rival.recipe, (*shared, *rival.settings)).model_copy(update={"recipe": f"rival-{name}"})
    path = folder / "tasks" / "recipes" / f"{recipe.recipe}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(recipe.model_dump(mode="json")), encoding="utf-8")
    return recipe.recipe


def row_of(row: Row) -> Row:
    """Return a cell with means of languages in place of questions, and the name of its rival."""
    return fold_row(row, rival=row["recipe"].removeprefix("rival-"))


def table(rows: Sequence[Row], arms: Sequence[Row]) -> str:
    """Return a line of each rival that is on several folds, beside what it is compared with.

    Args:
        rows: of this study.
        arms: cells of the study with a strong encoder.
    """
    kept = latest_rows(rows, by_keys("rival", "fold", "seed", "pool"))
    known = {name: [row for row in kept if row["rival"] == name] for name in RIVALS}
    own = latest_rows((row for row in arms if row["task"] == TASK), cells.identity)
    for arm in ARMS:
        known[arm] = [fold_row(row) for row in own if cells.find_arm(row) == arm and row["seed"] == 0]
    groups = groups_of(Library().task(TASK), sorted({code for row in kept for code in row["languages"]}))
    pools = [pool for pool in REORDERED if pool in {row["pool"] for row in kept}]
    lines = []
    for name, rival in RIVALS.items():
        if len(by_fold(known[name])) > 1:
            columns = [mean_of(known[name], codes) for codes in groups.values()]
            above = [rival.against, gain(known[name], known[rival.against])]
            score, *others = (spread(list(by_fold(known[name], pool).values())) for pool in (MAIN, *pools))
            lines.append([name, rival.says, str(len(by_fold(known[name]))), score, *above, *columns, *others])
    names = [f"{name} languages" for name in groups]
    heads = ["rival", "description", "folds", "mAP@20", "baseline", "Δ vs baseline [95 % CI]", *names, *pools]
    return markdown(heads, lines, left=2)


def _keep(folder: Path) -> None:
    """Add the rows of a study's finished cells."""
    if not any(folder.glob("cells/*/*/report.md")):
        return
    study = ms.read_study([folder])
    found = cells.rows_of_pools(study, cells.ENCODER)
    trained = [row for row in found if row["learner"] != ZERO_SHOT]
    append_new_rows(ROWS, [{**row_of(row), **provenance()} for row in trained], identity)


if __name__ == "__main__":
    main()
