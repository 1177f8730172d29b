"""`metasearch demo`: the learners side by side on the embedded benchmark."""

from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.errors import RunFolderError

LEARNERS = (("fine-tune", "trans"), ("maml", "trans"), ("maml-align", "mono-bi-multi"))
"""Each learner with the mode that it does best in, in Table 1 of the MAML-Align paper."""

BUDGET = ("meta_train=120", "meta_valid=40", "epochs=1", "eval_every=10", "patience=0")
"""Of learners that have no recipe for the encoder: the papers' budgets are for days."""


@_options.command("demo")
@click.option("--task", type=click.Choice(["demo", "demo-sts"]), default="demo", show_default=True, help="Task.")
@_options.encoder("Built-in name, local folder or hub name; by default the task's, `mini`.")
@_options.seed("Random seed of the runs.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Optimizer steps of each learner at most.")
@_options.options_group(_options.device, _options.output("Folder of the runs; by default a new one below runs/."))
@_options.as_json()
def command(task: str, encoder: str | None, output: Path | None, as_json: bool, **flags: Any) -> None:
    """Train fine-tune, MAML and MAML-Align on the embedded benchmark, and compare them with zero-shot in one table.

    At the end the articles are indexed with the last encoder; you can search them in any language.
    """
    from metasearch.cli._progress import ProgressBar
    from metasearch.cli._settings import fresh_folder, show
    from metasearch.cli.train import configure
    from metasearch.config.library import Library
    from metasearch.pipelines.train import TrainRun, side_by_side

    folder = output or fresh_folder(task)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(f"{folder} exists already; choose another folder with -o")
    library, results = Library(), []
    encoder = encoder or library.task(task).encoder
    for learner, mode in LEARNERS:
        chosen = "mono-bi" if task == "demo-sts" and mode == "trans" else mode
        tuned = library.recipe_for(learner, encoder) != learner
        budget = () if tuned else [f"budget.{value}" for value in BUDGET]
        config = configure(
            mode=chosen, task=task, encoder=encoder, learner=learner, recipe=None, assignments=budget, epochs=None,
            include=(), data=None, **flags,
        )  # fmt: skip
        results.append(TrainRun(config, folder / learner).execute(ProgressBar))
    show(side_by_side(folder, results), as_json)
    if library.task(task).kind == "retrieval":
        from metasearch.pipelines.search import index_articles

        # Not loaded before: a run that fails has no use for it.
        with ProgressBar("index") as bar:
            search = index_articles(folder, folder / LEARNERS[-1][0] / "model", task, flags["device"], bar)
        click.echo(f"search the articles with the last encoder: {search}", err=as_json)
