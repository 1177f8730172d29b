"""The main table of the MAML-Align paper (Tables 1, 7 and 8): zero-shot, fine-tune, MAML and MAML-Align.

    python benchmarks/main_table.py --task lareqa --data ~/data -o studies/main-lareqa
    python benchmarks/main_table.py --task lareqa --data ~/data --encoder mini --arms all --jobs 2 -o studies/mini
    python benchmarks/main_table.py --task stsb --data ~/data --encoder minilm --folds 3 --max-steps 16 -o studies/small
    python benchmarks/study_table.py --task lareqa --encoder mini

Each learner runs on every fold in the mode that Table 1 has for it, with `--arms all` in others too; ours stands beside
the paper's. The same command goes on with a study. A row of each arm is appended to `results/main_table.jsonl`: scores,
differences with intervals and p-values, language bias, budget; `study_table.py` prints them. The paper's rows on
translated training data (T-Train) are not run: its machine translations are not published.
"""

from pathlib import Path
from typing import Any

import click
from _legible import legible
from _outcome import RESULTS
from _paper import ALL_ARMS, MAIN_ARMS
from _study import beside_the_paper, keep, options, run


@click.command()
@click.option("--task", type=click.Choice(sorted(MAIN_ARMS)), required=True)
@click.option(
    "--arms",
    type=click.Choice(["main", "all"]),
    default="main",
    show_default=True,
    help="Rows of Table 1, or every mode of MAML and two of fine-tuning besides.",
)
@options
@legible
def main(task: str, arms: str, encoder: str, results: Path | None, **scale: Any) -> None:
    """Run the study, print ours beside the paper's figures, and keep what came out."""
    chosen = (MAIN_ARMS if arms == "main" else ALL_ARMS)[task]
    study = run(task, chosen, encoder, **scale)
    keep(study, encoder, results or RESULTS / "main_table.jsonl")
    click.echo(beside_the_paper(study, task, encoder, chosen))


if __name__ == "__main__":
    main()
