"""`metasearch train`: meta-train an encoder, and score it against zero-shot."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options, _settings
from metasearch.cli._settings import execute, fresh_folder
from metasearch.config.run import RunConfig
from metasearch.errors import ConfigError


@_options.command("train")
@_options.settings(RunConfig, first=("mode", "task", "name"), task="demo")
@click.option(
    "--learner", shell_complete=_options.complete("learners"),
    help="Learner; by default maml-align for a mode of three links, maml for one of two.",
)  # fmt: skip
@click.option(
    "--recipe", shell_complete=_options.complete("recipe"), help="Hyper-parameters by name; by default the learner's."
)
@_options.assignments
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over meta-train and meta-valid at most.")
@_options.run
def command(output: Path | None, trackers: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Meta-train an encoder on a task, and report its scores against zero-shot.

    \b
    Examples:
      metasearch train --mode mono-bi-multi
      metasearch train --task lareqa --mode trans --encoder minilm --data ~/data --max-steps 90 -o runs/lareqa
      metasearch resume runs/lareqa
    """
    from metasearch.pipelines.train import TrainRun

    config = configure(**flags)
    run = TrainRun(config, output or fresh_folder(config.data.task, config.recipe.learner))
    execute(run, trackers, flags["trust_remote_code"], as_json)


def configure(
    mode: str | None, learner: str | None, recipe: str | None, assignments: Sequence[str], epochs: int | None,
    **flags: Any,
) -> RunConfig:  # fmt: skip
    """Return the settings of a run, with all names checked."""
    from metasearch.config.library import Library, choose_recipe
    from metasearch.config.task import require_training

    library = Library(flags["include"])
    task = library.task(flags["task"])
    require_training(task)
    if mode is None:
        raise ConfigError(f"--mode is missing; one of {', '.join(library.names('mode'))}")
    parsed = library.mode(mode)
    flags["encoder"] = flags["encoder"] or task.encoder
    keys = [each.partition("=")[0].strip() for each in assignments]
    if epochs and (same := next((key for key in keys if key in ("budget", "budget.epochs")), None)):
        raise ConfigError(f"--epochs {epochs} and --set {same} set the same value; omit one")
    changes = [*assignments, *([f"budget.epochs={epochs}"] if epochs else [])]
    chosen = choose_recipe(parsed, flags["encoder"], learner, recipe, changes, flags["include"])
    return _settings.configure(RunConfig, flags, beside=bool(task.data), mode=parsed, recipe=chosen)
