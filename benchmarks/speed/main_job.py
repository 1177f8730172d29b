"""The main job on real data, with its time and memory: learners on the same number of episodes, beside zero-shot.

    python -m benchmarks.speed.main_job --task lareqa --encoder minilm --data ~/data --episodes 64 -o runs/main-lareqa
    python -m benchmarks.speed.main_job --task stsb --encoder minilm --data ~/data --episodes 240 -o runs/main-stsb

Each learner is one `metasearch train`; one that is finished is not run again. The means over languages are appended to
`benchmarks/results/main_job.jsonl`, with the seconds and the peak memory of the run.
"""

import json
from pathlib import Path

import click

from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, read_rows
from metasearch.runs.markdown import by_language, markdown
from metasearch.spec.library import choose_recipe

MODES = {
    "lareqa": {"fine-tune": "trans", "maml": "trans", "maml-align": "mono-bi-multi"},
    "stsb": {"fine-tune": "mono-bi", "maml": "mono-bi"},
    "demo": {"fine-tune": "trans", "maml": "trans", "maml-align": "mono-bi-multi"},
}
"""Task → learner → the mode it is trained in."""
IDENTITY = ("task", "encoder", "learner", "mode", "fold", "seed", "split", "measure", "episodes", "revision")
"""Keys by which a row is known again."""


@click.command(cls=Command)
@click.option("--task", type=click.Choice(sorted(MODES)), required=True)
@click.option("--encoder", required=True, help="Built-in name, local folder or hub name.")
@click.option("--data", help="Folder of the task's files or a parent of it.")
@click.option("--episodes", type=click.IntRange(min=4), required=True, help="For each learner.")
@click.option("--fold", type=int, default=0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS / "main_job.jsonl", help="Rows to add to.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the runs.")
def main(
    task: str, encoder: str, data: str | None, episodes: int, fold: int, seed: int, results: Path, output: Path
) -> None:
    """Train each learner, print them side by side, and keep the means."""
    rows: list[Row] = []
    costs = []
    for learner, mode in MODES[task].items():
        run = output / learner
        train(run, task, mode, learner, encoder, data, episodes, fold, seed)
        facts = json.loads((run / "facts.json").read_text(encoding="utf-8"))
        cost = {key: facts[key] for key in ("seconds", "peak_memory_mib")}
        costs.append([learner, f"{cost['seconds']:.0f}", f"{cost['peak_memory_mib']:.0f}"])
        for row in read_rows(run / "results.jsonl"):
            if row["learner"] == learner:
                rows.append({**row, **cost})
            elif not costs[1:]:  # zero-shot is the same in every run
                rows.append(row)
    stamp = {"episodes": episodes, **provenance()}
    means = [{**stamp, **row} for row in rows if row["language"] == "mean"]
    append_new_rows(results, means, lambda row: tuple(row.get(key) for key in IDENTITY))
    click.echo(f"{by_language(rows, 'test')}\n\n{markdown(['learner', 'seconds', 'peak MiB'], costs)}")


def train(
    run: Path, task: str, mode: str, learner: str, encoder: str, data: str | None, episodes: int, fold: int, seed: int
) -> None:
    """Train one learner in its run folder, or go on with it; a finished run is left as it is."""
    if (run / "report.md").exists():
        return
    if (run / "config.yaml").exists():
        metasearch("train", "--resume", run)
        return
    steps = episodes // choose_recipe(mode, encoder, learner, None).budget.meta_batch
    # Dev is scored once, at the end: so short a run has nothing to stop early.
    flags = ["--fold", fold, "--seed", seed, "--set", "budget.eval_every=0", "--max-steps", steps]
    flags += ["--data", data] if data else []
    metasearch("train", "--task", task, "--mode", mode, "--learner", learner, "--encoder", encoder, *flags, "-o", run)


if __name__ == "__main__":
    main()
