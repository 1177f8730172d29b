"""The tables of the MAML-Align paper (Tables 1, 7 and 8): zero-shot, fine-tune, MAML and MAML-Align.

    python -m benchmarks.paper.main_table --task lareqa --data ~/data -o studies/main-lareqa
    python -m benchmarks.paper.main_table --task lareqa --data ~/data --encoder mini --arms all --jobs 2 -o studies/mini
    python -m benchmarks.paper.main_table --task stsb --data ~/data --encoder minilm --folds 3 -o studies/small
    python -m benchmarks.paper.main_table --task stsb --data ~/data --encoder e5 --neutral --seeds 0 -o studies/e5
      -- --trim-vocab task --precision bfloat16

`metasearch crossval` runs each learner on every fold, in its mode of Table 1, with `--arms all` in others too, with
`--arms modes` in every mode of Table 7. The same command continues a study. Each arm adds a row to
`results/main_table.jsonl`: scores, differences with intervals and p-values, language bias. With `--neutral` everything
is trained through a projection, and the projection alone is an arm. `stsb-mt-translated` has T-Train; the paper's own
machine translations are not published.
"""

from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows
from benchmarks.paper.maml_align_paper import ALL_ARMS, ENCODER, MAIN_ARMS, TABLE_7
from benchmarks.paper.study_rows import study_rows
from benchmarks.paper.study_tables import against_table, summary_table
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT

ARMS = {"main": MAIN_ARMS, "all": ALL_ARMS, "modes": {"lareqa": TABLE_7, "lareqa-sentences": TABLE_7}}


@click.command(cls=Command)
@click.option("--task", type=click.Choice(sorted(MAIN_ARMS)), required=True)
@click.option(
    "--arms",
    type=click.Choice(list(ARMS)),
    default="main",
    show_default=True,
    help="Rows of Table 1; every mode of MAML and two of fine-tuning besides; or all rows of Table 7.",
)
@click.option("--encoder", default=ENCODER, show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--data", help="Folder of the task's files or a parent of it.")
@click.option("--folds", help="How many, or which, such as 0,2; by default all five.")
@click.option("--seeds", default="0,1,2", show_default=True, help="0 is a third of the work.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Outer steps of each run at most.")
@click.option("--set", "assignments", multiple=True, metavar="[LEARNER:]KEY=VALUE", help="Of recipes; repeatable.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes at a time.")
@click.option(
    "--results", type=click.Path(path_type=Path), default=RESULTS / "main_table.jsonl", help="Rows to add to."
)
@click.option("--neutral", is_flag=True, help="Train through a map that takes the language out of the vectors.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the study.")
@click.argument("others", nargs=-1, metavar="[-- CROSSVAL-OPTION...]")
def main(
    task: str,
    arms: str,
    encoder: str,
    data: str | None,
    folds: str | None,
    seeds: str,
    max_steps: int | None,
    assignments: tuple[str, ...],
    jobs: int,
    results: Path,
    neutral: bool,
    output: Path,
    others: tuple[str, ...],
) -> None:
    """Run the study, print its tables, and keep its rows; `metasearch report` says more.

    What stands after -- are further options of `metasearch crossval`.
    """
    if task not in ARMS[arms]:
        raise click.UsageError(f"--arms {arms}: the paper has no such table for {task}")
    flags = {"--data": data, "--folds": folds, "--max-steps": max_steps}
    given = [word for flag, value in flags.items() if value is not None for word in (flag, value)]
    given += [word for assignment in assignments for word in ("--set", assignment)]
    learners = [ZERO_SHOT, *(f"{learner}:{mode}" for learner, mode in ARMS[arms][task])]
    if neutral:
        learners.insert(1, NEUTRAL)
        given += [w for name in _trained(task, arms) for w in ("--set", f"{name}:neutralise.when=before")]
    shared = ("--encoder", encoder, "--seeds", seeds, "--jobs", jobs)
    metasearch("crossval", "--task", task, "--learner", ",".join(learners), *shared, *given, *others, "-o", output)
    rows = [{**row, **provenance()} for row in study_rows(ms.read_study([output]), encoder)]
    append_new_rows(results, rows, identity)
    click.echo(f"{summary_table(rows)}\n\n{against_table(rows)}")


def _trained(task: str, arms: str) -> list[str]:
    """Return the learners of a study, each once."""
    return list(dict.fromkeys(learner for learner, _ in ARMS[arms][task]))


def identity(row: Row) -> object:
    """Return what a row of an arm is known again by."""
    return (row.get("study"), row["encoder"], row["learner"], row["mode"], row["data"], row.get("mean"))


if __name__ == "__main__":
    main()
