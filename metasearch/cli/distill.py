"""`metasearch distill`: run the stages of a recipe on parallel corpora."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import absolute_data, absolute_encoder, absolute_folders, fresh_folder, refuse_others
from metasearch.errors import ConfigError

_PATHS = ("corpus", "scored", "entailment")


@click.command("distill", short_help="Make a small student, or align an encoder across languages.")
@click.option("--recipe", default="compress", show_default=True, help="See `metasearch ls distillations`.")
@click.option("--teacher", metavar="ENCODER", help="Frozen encoder that knows the pivot language.")
@click.option("--assistant", metavar="ENCODER", help="Encoder in full size that the student is made of.")
@click.option("--student", metavar="ENCODER", help="What is trained, where it is not made of the assistant.")
@click.option("--corpus", multiple=True, metavar="PATH", help="Folder or file of translations; repeatable.")
@click.option("--scored", multiple=True, metavar="FILE", help="Sentence pairs with scores from 0 to 5; repeatable.")
@click.option("--entailment", multiple=True, metavar="FILE", help="SNLI or MultiNLI file; repeatable.")
@click.option("--stages", metavar="WHICH", help="Part of the stages, such as 2-4, 3 or student,contrast.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Override a recipe value; repeatable.")
@click.option("--evaluate", multiple=True, metavar="TASK", help="Score on a task before and after stages; repeatable.")
@click.option("--targets", metavar="DIR", help="Where outputs of frozen encoders are kept; by default in the run.")
@_options.seed("Of batches, dropout and the student.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Steps of each stage, at most.")
@_options.precision
@_options.gradients()
@_options.options_group(_options.device, _options.data, _options.include, _options.trust)
@_options.output
@_options.resume()
@_options.as_json
def command(resume: Path | None, output: Path | None, as_json: bool, **flags: Any) -> None:
    """Run the stages of a recipe: teach an assistant, compress it into a student, align languages.

    \b
    Examples:
      metasearch distill --teacher minilm --assistant runs/assistant --corpus ~/data/parallel -o runs/small
      metasearch distill --stages 4 --teacher minilm --student runs/small/3-student/model --corpus ~/data/parallel
      metasearch distill --recipe ema-small --student runs/small/1-assistant/model --corpus ~/data/parallel
      metasearch resume runs/small
    """
    from metasearch.cli._output import show_run
    from metasearch.cli._progress import ProgressBar
    from metasearch.jobs.distill import job
    from metasearch.training.machine import keep_memory

    keep_memory()
    if resume is not None:
        refuse_others()
        result = job.resume(resume, ProgressBar, flags["trust_remote_code"])
    else:
        config = configure(**flags)
        result = job.begin(config, output or fresh_folder("distill", config.recipe.recipe), ProgressBar)
    show_run(result, as_json)


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
    targets = rest.pop("targets")
    places = {"data": absolute_data(rest.pop("data")), "targets": str(Path(targets).resolve()) if targets else None}
    return DistillConfig.model_validate({**rest, **places, "recipe": chosen, "include": absolute_folders(include)})
