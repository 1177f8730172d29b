"""Transfer modes compared (MAML-Align paper, Table 7 and Figure 4): fine-tune and MAML in each, MAML-Align in its own.

    python benchmarks/transfer_modes.py --data ~/data -o studies/modes
    python benchmarks/transfer_modes.py --data ~/data --encoder minilm --folds 0, --max-steps 16 -o studies/modes-small

The same command goes on with a study. A row of each arm is appended to `benchmarks/results/transfer_modes.jsonl`.
"""

from pathlib import Path
from typing import Any

import click

from _legible import legible
from _outcome import RESULTS
from _paper import LAREQA
from _study import beside_the_paper, keep, options, run

ARMS = tuple((learner, mode) for learner, mode in LAREQA if mode is not None)


@click.command()
@options
@legible
def main(encoder: str, results: Path | None, **scale: Any) -> None:
    """Run the study on LAReQA, print ours beside the paper's figures, and keep what came out."""
    study = run("lareqa", ARMS, encoder, **scale)
    keep(study, encoder, results or RESULTS / "transfer_modes.jsonl")
    click.echo(beside_the_paper(study, "lareqa", encoder, ARMS))


if __name__ == "__main__":
    main()
