"""`metasearch neutralise`: remove language bias from an encoder's embeddings, from texts without labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result, reject_unused_options
from metasearch.config.projection import ProjectionSettings
from metasearch.errors import ConfigError


@_options.command("neutralise")
@click.argument("encoder")
@click.option(
    "--texts", type=click.Path(path_type=Path), multiple=True, metavar="PATH",
    help="Files named by their language, de.txt or en-de.tsv, folders of them, or a parallel corpus; repeatable.",
)  # fmt: skip
@_options.task("Task whose training split of the fold is read instead of --texts, without its labels.")
@_options.settings(ProjectionSettings, first=("languages",))
@click.option(
    "--evaluate", "tasks", cls=_options.ListOption, metavar="TASKS",
    help="Score on the test part before and after; by default: --task.",
)  # fmt: skip
@_options.options_group(_options.one_fold, _options.device, _options.trust)
@_options.options_group(_options.output("Folder of the encoder; new or empty.", required=True))
@_options.as_json("all figures")
def command(
    encoder: str, texts: Sequence[Path], task: str | None, tasks: Sequence[str], output: Path, as_json: bool,
    device: Any, trust_remote_code: bool, **asked: Any,
) -> None:  # fmt: skip
    """Remove language bias from ENCODER, so that a search prefers no answer for its language.

    A projection at the end of the model removes what differs between languages. Some hundred texts of each language
    are enough to estimate it. It needs no labels, a search needs no language tags, and plain sentence-transformers
    loads the model. Languages outside the estimate profit less.

    \b
    Examples:
      metasearch neutralise mini --task demo -o neutral
      metasearch neutralise runs/maml/model --texts corpus/ --languages ar,de,el,hi --evaluate lareqa -o neutral
      metasearch neutralise mini --texts de.txt --texts tr.txt -o neutral
    """
    from metasearch.data.benchmark import load_benchmark
    from metasearch.data.texts import read_tagged
    from metasearch.io.output import claim

    where = {name: asked.pop(name) for name in _options.FOLD}
    claim(output)
    if bool(texts) == bool(task):
        raise ConfigError("pass either --texts PATH or --task TASK")
    if not (task or tasks):
        reject_unused_options(*where, why="no task is read; pass --task or --evaluate")
    settings = _options.validate(ProjectionSettings, asked, "neutralise")
    given = [task] if task else []
    names = dict.fromkeys([*given, *tasks])
    benchmarks = {name: load_benchmark(name, **where) for name in names}

    from metasearch.encoders.load import load_encoder
    from metasearch.pipelines.neutral import describe_effect, neutralise_encoder, train_texts
    from metasearch.runs.progress import ProgressBar

    read = train_texts(benchmarks[task], settings) if task else read_tagged(texts, settings.texts, settings.languages)
    scored = [benchmarks[name] for name in tasks or given]
    length = scored[0].task.max_length if scored else None
    loaded = load_encoder(encoder, length, device=device, trust_remote_code=trust_remote_code)
    with ProgressBar("neutralise") as bar:
        effect = neutralise_encoder(loaded, read, settings, output, scored, bar)
    print_result(as_json, {"model": str(output), **effect}, f"{describe_effect(effect)}\nmodel: {output}")
