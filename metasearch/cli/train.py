"""`metasearch train`: meta-train an encoder, and score it against zero-shot."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.cli._settings import absolute_encoder, absolute_folders, fresh_folder, refuse_others
from metasearch.errors import ConfigError


@click.command("train", short_help="Meta-train an encoder; report against zero-shot.")
@click.option(
    "--mode",
    shell_complete=_complete.declared("mode"),
    help="Transfer mode, such as mono-bi-multi; see `metasearch ls modes`.",
)
@click.option(
    "--task",
    default="demo",
    show_default=True,
    shell_complete=_complete.declared("task"),
    help="What to train on; see `metasearch ls tasks`.",
)
@_options.encoder
@click.option(
    "--learner",
    shell_complete=_complete.learners(),
    help="By default maml-align for a mode of three links, maml for one of two.",
)
@click.option(
    "--recipe", shell_complete=_complete.declared("recipe"), help="Hyper-parameters by name; by default the learner's."
)
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Override a recipe value; repeatable.")
@_options.options_group(_options.fold, _options.fold_seed)
@_options.seed("Of episodes, dropout and the tiny encoder.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Outer steps at most; both phases shrink.")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over meta-train and meta-valid, at most.")
@_options.run
def command(resume: Path | None, output: Path | None, as_json: bool, **flags: Any) -> None:
    """Meta-train an encoder on a task, and report its scores against zero-shot.

    \b
    Examples:
      metasearch train --mode mono-bi-multi
      metasearch train --task lareqa --mode trans --encoder minilm --data ~/data --max-steps 90 -o runs/lareqa
      metasearch resume runs/lareqa
    """
    from metasearch.cli._output import show
    from metasearch.cli._progress import ProgressBar
    from metasearch.jobs import train
    from metasearch.jobs.resume import resume_run

    if resume is not None:
        refuse_others()
        result = resume_run(resume, ProgressBar, flags["trust_remote_code"])
    else:
        config = configure(**flags)
        with ProgressBar(config.recipe.learner) as bar:
            result = train.begin(config, output or fresh_folder(config.task, config.recipe.learner), bar)
    show(result, as_json)


def configure(
    mode: str | None,
    task: str,
    encoder: str | None,
    learner: str | None,
    recipe: str | None,
    assignments: Sequence[str],
    epochs: int | None,
    include: Sequence[str],
    **rest: Any,
) -> Any:
    """Return the configuration of a run, every name in it checked."""
    from metasearch.spec.library import Library, choose_recipe
    from metasearch.spec.run import RunConfig
    from metasearch.spec.task import require_training

    library = Library(include)
    require_training(library.task(task))
    if mode is None:
        raise ConfigError(f"--mode is missing; one of {', '.join(library.names('mode'))}, or --resume RUN")
    encoder = encoder or library.task(task).encoder
    keys = [each.partition("=")[0].strip() for each in assignments]
    if epochs and (same := next((key for key in keys if key in ("budget", "budget.epochs")), None)):
        raise ConfigError(f"--epochs {epochs} and --set {same} say the same thing; leave one of them out")
    changes = [*assignments, *([f"budget.epochs={epochs}"] if epochs else [])]
    chosen = choose_recipe(mode, encoder, learner, recipe, changes, include)
    folders = absolute_folders(include, rest.get("data"), beside=bool(library.task(task).data))
    named = {"task": task, "mode": mode, "encoder": absolute_encoder(encoder), "recipe": chosen}
    return RunConfig.model_validate({**rest, **named, **folders})
