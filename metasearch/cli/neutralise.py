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
@_options.options_group(_options.one_fold, _options.device, _options.trust)
@_options.options_group(_options.output("Folder of the encoder; new or empty.", required=True))
@_options.as_json("the number of texts")
def command(
    encoder: str, texts: Sequence[Path], task: str | None, output: Path, as_json: bool, device: Any,
    trust_remote_code: bool, **asked: Any,
) -> None:  # fmt: skip
    """Remove language bias from ENCODER, so that a search prefers no answer for its language.

    A projection at the end of the model removes what differs between languages. Some hundred texts of each language
    are enough to estimate it. It needs no labels, a search needs no language tags, and plain sentence-transformers
    loads the model. Languages outside the estimate profit less.

    \b
    Examples:
      metasearch neutralise mini --task demo -o neutral
      metasearch neutralise runs/maml/model --texts corpus/ --languages ar,de,el,hi -o neutral
      metasearch neutralise mini --texts de.txt --texts tr.txt -o neutral
    """
    from metasearch.data.benchmark import load_benchmark
    from metasearch.data.texts import read_tagged
    from metasearch.io.output import claim

    where = {name: asked.pop(name) for name in _options.FOLD}
    claim(output)
    if bool(texts) == bool(task):
        raise ConfigError("pass either --texts PATH or --task TASK")
    if not task:
        reject_unused_options(*where, why="no task is read; pass --task")
    settings = _options.validate(ProjectionSettings, asked, "neutralise")
    benchmark = load_benchmark(task, **where) if task else None

    from metasearch.encoders.load import load_encoder
    from metasearch.pipelines.neutral import neutralise_encoder, train_texts
    from metasearch.runs.progress import ProgressBar

    read = train_texts(benchmark, settings) if benchmark else read_tagged(texts, settings.texts, settings.languages)
    length = benchmark.task.max_length if benchmark else None
    loaded = load_encoder(encoder, length, device=device, trust_remote_code=trust_remote_code)
    with ProgressBar("neutralise") as bar:
        made = neutralise_encoder(loaded, read, settings, output, bar)
    counts = ", ".join(f"{language} {count}" for language, count in made["texts"].items())
    text = f"directions removed: {made['directions']}\ntexts in the estimate: {counts}\nmodel: {output}"
    print_result(as_json, {"model": str(output), **made}, text)
