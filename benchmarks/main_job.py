"""The main job on real data: fine-tune, MAML and MAML-Align on the same number of episodes, beside zero-shot.

    python benchmarks/main_job.py --task lareqa --encoder minilm --data ~/data --episodes 64 -o runs/main-lareqa
    python benchmarks/main_job.py --task stsb --encoder minilm --data ~/data --episodes 240 -o runs/main-stsb

Appends the means over languages to `benchmarks/results/main_job.jsonl` and prints the table.
"""

from pathlib import Path

import click

from metasearch.cli._progress import Shown
from metasearch.jobs import train
from metasearch.spec.library import choose_recipe
from metasearch.spec.recipe import RunConfig

RESULTS = Path(__file__).parent / "results" / "main_job.jsonl"
STUDIES = {
    "lareqa": {"fine-tune": "trans", "maml": "trans", "maml-align": "mono-bi-multi"},
    "stsb": {"fine-tune": "mono-bi", "maml": "mono-bi"},
}
"""Task → learner → the mode it is trained in."""


@click.command()
@click.option("--task", type=click.Choice(sorted(STUDIES)), required=True)
@click.option("--encoder", required=True, help="Built-in name, local folder or hub name.")
@click.option("--data", help="Folder of the task's files or a parent of it.")
@click.option("--episodes", type=click.IntRange(min=4), required=True, help="For each learner.")
@click.option("--fold", type=int, default=0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the runs.")
def main(task: str, encoder: str, data: str | None, episodes: int, fold: int, seed: int, output: Path) -> None:
    """Train each learner, print them side by side, and keep the means."""
    results = []
    for learner, mode in STUDIES[task].items():
        # Dev is scored once, at the end: so short a run has nothing to stop early.
        recipe = choose_recipe(mode, encoder, learner, None, ["budget.eval_every=0"])
        config = RunConfig(
            task=task,
            mode=mode,
            encoder=encoder,
            recipe=recipe,
            fold=fold,
            seed=seed,
            max_steps=episodes // recipe.budget.meta_batch,
            data=data,
        )
        with Shown(learner) as shown:
            results.append(train.train(config, output / learner, shown))
    report, rows = train.side_by_side(output, results)
    train.append_rows(RESULTS, [{"episodes": episodes, **row} for row in rows if row["language"] == "mean"])
    click.echo(report)


if __name__ == "__main__":
    main()
