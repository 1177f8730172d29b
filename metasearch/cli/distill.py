"""`metasearch distill`: run the stages of a recipe on parallel corpora."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.cli._settings import absolute_encoder, absolute_folders, fresh_folder, refuse_others
from metasearch.errors import ConfigError

_PATHS = ("corpus", "scored", "entailment")


@click.command("distill", short_help="Make a small student, or align an encoder across languages.")
@click.option(
    "--recipe",
    default="compress",
    show_default=True,
    shell_complete=_complete.declared("distillation"),
    help="See `metasearch ls distillations`.",
)
@_options.distilled
@click.option("--stages", metavar="WHICH", help="Part of the stages, such as 2-4, 3 or student,contrast.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Override a recipe value; repeatable.")
@click.option(
    "--evaluate",
    multiple=True,
    metavar="TASK",
    shell_complete=_complete.declared("task"),
    help="Score on a task before and after stages; repeatable.",
)
@click.option("--targets", metavar="DIR", help="Where outputs of frozen encoders are kept; by default in the run.")
@click.option(
    "--target-type",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    help="How they are kept, of a prepared corpus.",
)
@_options.seed("Of batches, dropout and the student.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Steps of each stage, at most.")
@_options.run
def command(resume: Path | None, output: Path | None, as_json: bool, **flags: Any) -> None:
    """Run the stages of a recipe: teach an assistant, compress it into a student, align languages.

    \b
    Examples:
      metasearch distill --teacher minilm --assistant runs/assistant --corpus ~/data/parallel -o runs/small
      metasearch distill --stages 4 --teacher minilm --student runs/small/3-student/model --corpus ~/data/parallel
      metasearch distill --recipe ema-small --student runs/small/1-assistant/model --corpus ~/data/parallel
      metasearch resume runs/small
    """
    from metasearch.cli._output import show
    from metasearch.cli._progress import ProgressBar
    from metasearch.jobs.distill import job
    from metasearch.jobs.resume import resume_run

    if resume is not None:
        refuse_others()
        result = resume_run(resume, ProgressBar, flags["trust_remote_code"])
    else:
        config = configure(**flags)
        result = job.begin(config, output or fresh_folder("distill", config.recipe.recipe), ProgressBar)
    show(result, as_json)


def configure(recipe: str, stages: str | None, assignments: Sequence[str], include: Sequence[str], **rest: Any) -> Any:
    """Return the configuration of a distillation, every name in it checked and every path made absolute."""
    from metasearch.spec.distill_run import DistillConfig
    from metasearch.spec.library import Library, overrides

    library = Library(include)
    chosen = library.distillation(recipe, overrides(assignments))
    if stages is not None:
        chosen = chosen.only(stages)
    for task in rest["evaluate"]:
        library.task(task)
    for kind in _PATHS:
        missing = [path for path in rest[kind] if not Path(path).exists()]
        if missing:
            raise ConfigError(f"--{kind} {missing[0]}: no such file or folder")
        rest[kind] = tuple(str(Path(path).resolve()) for path in rest[kind])
    for role in ("teacher", "assistant", "student"):
        rest[role] = absolute_encoder(rest[role]) if rest[role] else None
    rest["targets"] = str(Path(rest["targets"]).resolve()) if rest["targets"] else None
    return DistillConfig.model_validate({**rest, "recipe": chosen, **absolute_folders(include, rest["data"])})
