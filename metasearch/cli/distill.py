"""`metasearch distill`: run the stages of a recipe on parallel corpora."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options, _settings
from metasearch.cli._settings import execute, fresh_folder
from metasearch.config.distill_run import DistillConfig, TextsConfig
from metasearch.data.locate import is_hub_name
from metasearch.errors import ConfigError
from metasearch.io import near


@_options.command("distill")
@click.option(
    "--recipe", default="compress", show_default=True, help="Recipe by name; see `metasearch ls distillations`."
)
@_options.settings(DistillConfig)
@click.option("--stages", metavar="WHICH", help="Stages to run, such as 2-4, 3 or student,contrast.")
@_options.assignments
@_options.run
def command(output: Path | None, trackers: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Run the stages of a recipe: teach an assistant, compress it into a student, align languages.

    \b
    Examples:
      metasearch distill --teacher minilm --assistant runs/assistant --corpus ~/data/parallel -o runs/small
      metasearch distill --stages 4 --teacher minilm --student runs/small/3-student/model --corpus ~/data/parallel
      metasearch distill --recipe ema-small --student runs/small/1-assistant/model --corpus ~/data/parallel
      metasearch resume runs/small
    """
    from metasearch.pipelines.distill.job import DistillRun

    config = configure(**flags)
    run = DistillRun(config, output or fresh_folder("distill", config.recipe.recipe))
    execute(run, trackers, flags["trust_remote_code"], as_json)


def configure(recipe: str, stages: str | None, assignments: Sequence[str], **flags: Any) -> DistillConfig:
    """Return the settings of a distillation, with names checked and absolute paths."""
    from metasearch.config.library import overrides

    library = _settings.library(flags["include"])
    chosen = library.distillation(recipe, overrides(assignments))
    if stages is not None:
        chosen = chosen.only(stages)
    for kind in TextsConfig.model_fields:
        missing = [path for path in flags[kind] if not (is_hub_name(path) or Path(path).exists())]
        if missing:
            raise ConfigError(f"--{kind} {missing[0]}: no such file or folder{near(Path(missing[0]))}")
    config = _settings.configure(DistillConfig, {**flags, "evaluate": ()}, recipe=chosen)
    scored = tuple(library.scored(task, dict(config.data)) for task in flags["evaluate"])
    return config.model_copy(update={"evaluate": scored})
