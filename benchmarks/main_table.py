"""The main table of the MAML-Align paper (Tables 1, 7 and 8): zero-shot, fine-tune, MAML and MAML-Align.

    python benchmarks/main_table.py --task lareqa --data ~/data -o studies/main-lareqa
    python benchmarks/main_table.py --task stsb --data ~/data --encoder minilm --folds 3 --max-steps 16 -o studies/small

Each learner runs in the mode that Table 1 has for it, on every fold; ours stands beside the paper's. The same command
goes on with a study. Means by language are appended to `benchmarks/results/main_table.jsonl`. The paper's rows on
translated training data (T-Train) are not run: its machine translations are not published.
"""

from typing import Any

import click

from _paper import MAIN_ARMS
from _study import beside_the_paper, keep, options, run


@click.command()
@click.option("--task", type=click.Choice(sorted(MAIN_ARMS)), required=True)
@options
def main(task: str, encoder: str, **scale: Any) -> None:
    """Run the study, print ours beside the paper's figures, and keep the means."""
    study = run(task, MAIN_ARMS[task], encoder, **scale)
    keep(study, "main_table", encoder)
    click.echo(beside_the_paper(study, task, encoder, MAIN_ARMS[task]))


if __name__ == "__main__":
    main()
