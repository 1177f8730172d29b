"""`metasearch neutralise`: take the language out of an encoder's vectors, from texts without labels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.cli._settings import reject_unused_options
from metasearch.errors import ConfigError


@_options.command("neutralise")
@click.argument("encoder", shell_complete=_complete.encoders)
@click.option(
    "--texts", type=click.Path(path_type=Path), multiple=True, metavar="PATH",
    help="Files named by their language, de.txt or en-de.tsv, or folders of them; repeatable.",
)  # fmt: skip
@click.option(
    "--task",
    shell_complete=_complete.declared("task"),
    help="In place of --texts: the train part of a task's fold, without its labels.",
)
@click.option(
    "--languages", metavar="LIST", help="In the estimate, such as ar,de,el; by default all there are texts of."
)
@click.option(
    "--rank", type=click.IntRange(min=1), metavar="R",
    help="Number of directions to remove; by default one less than languages.",
)  # fmt: skip
@click.option(
    "--sentences", type=click.IntRange(min=1), default=600, show_default=True, metavar="N",
    help="Texts of each language, at most.",
)  # fmt: skip
@click.option(
    "--evaluate", "tasks", multiple=True, metavar="TASK", shell_complete=_complete.declared("task"),
    help="Score on the test part before and after; repeatable. By default that of --task.",
)  # fmt: skip
@_options.options_group(
    _options.fold, _options.fold_seed, _options.device, _options.data, _options.include, _options.trust
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder of the encoder; new or empty.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one JSON object on stdout.")
def command(
    encoder: str, device: Any, trust_remote_code: bool, output: Path | None, as_json: bool, **asked: Any
) -> None:
    """Take the language out of the vectors of ENCODER, so that a search prefers no answer for its language.

    What languages differ in is estimated from some hundred texts of each, and taken out by a linear module at the end
    of the model, which plain sentence-transformers loads. No labels are read, and a search needs no language of a text.
    Languages that are not in the estimate profit less.

    \b
    Examples:
      metasearch neutralise mini --task demo -o neutral
      metasearch neutralise runs/maml/model --texts corpus/ --languages ar,de,el,hi --evaluate lareqa -o neutral
      metasearch neutralise mini --texts de.txt --texts tr.txt -o neutral
    """
    from metasearch.compress.output import claim

    if output is None:
        raise ConfigError("say where the encoder goes with -o DIR")
    claim(output)
    settings, texts, scored = configure(**asked)

    from metasearch.cli._progress import ProgressBar
    from metasearch.pipelines import factory
    from metasearch.pipelines.neutralise import neutralise_encoder

    length = scored[0][0].task.max_length if scored else None
    loaded = factory.load_encoder(encoder, length, device=device, trust_remote_code=trust_remote_code)
    with ProgressBar("neutralise") as bar:
        done = neutralise_encoder(loaded, texts, settings, output, scored, bar)
    if as_json:
        click.echo(json.dumps({"model": str(output), **done.tree()}, ensure_ascii=False))
    else:
        click.echo(f"{done.report()}\nmodel: {output}")


def configure(
    texts: Sequence[Path],
    task: str | None,
    languages: str | None,
    rank: int | None,
    sentences: int,
    tasks: Sequence[str],
    **data: Any,
) -> tuple[Any, Any, list[tuple[Any, str]]]:
    """Return the settings of the estimate, its texts, and the benchmarks and parts to score on, all checked."""
    from metasearch.config import yaml
    from metasearch.config.postprocessing import NeutralSettings
    from metasearch.config.yaml import Places
    from metasearch.data.benchmark import load_benchmark
    from metasearch.data.texts_by_language import read_tagged

    if bool(texts) == bool(task):
        raise ConfigError("say what to estimate from: --texts PATH, or --task TASK; one of them")
    named = [code.strip() for code in languages.split(",")] if languages is not None else []
    asked = {"rank": rank, "texts": sentences, "languages": named}
    flags: Places = {("texts",): "--sentences", ("languages",): "--languages", ("rank",): "--rank"}
    settings = yaml.check(asked, NeutralSettings, "neutralise", flags)
    if not (task or tasks):
        reject_unused_options(
            "fold", "fold_seed", "data", "include", why="no task is read; say --task or --evaluate, too"
        )
    benchmarks = {name: load_benchmark(name, **data) for name in dict.fromkeys([*filter(None, [task]), *tasks])}

    from metasearch.pipelines.neutral import train_texts

    found = train_texts(benchmarks[task], settings) if task else read_tagged(texts, sentences, settings.languages)
    return settings, found, [(benchmarks[name], "test") for name in tasks or filter(None, [task])]
