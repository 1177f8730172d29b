"""`metasearch prepare`: a parallel corpus becomes files of tokens, which a distillation reads as it goes."""

import json
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.cli._settings import listed
from metasearch.errors import ConfigError, quoted


@_options.command("prepare")
@click.argument("corpus", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PREPARED", help="Folder of the corpus.")
@click.option(
    "--encoder", default="mini", show_default=True, shell_complete=_complete.encoders,
    help="That is to be trained, or any with its tokenizer: built-in name, local folder or hub name.",
)  # fmt: skip
@_options.prompts
@click.option(
    "--length",
    type=click.IntRange(min=3),
    default=128,
    show_default=True,
    metavar="TOKENS",
    help="Where texts are cut.",
)
@click.option("--pivot", metavar="TAG", default="en", show_default=True, help="Language on one side of every file.")
@click.option("--languages", metavar="TAGS", help="Of the translations, such as de,fr; by default all.")
@click.option("--only", metavar="NAMES", help="Corpora to read, such as TED2020; by default all.")
@click.option("--max-lines", type=click.IntRange(min=0), default=0, help="Pairs that are read of a file; 0 reads all.")
@click.option("--max-chars", type=click.IntRange(min=0), default=0, help="Longest side in characters; 0 takes any.")
@click.option("--max-tokens", type=click.IntRange(min=0), default=0, help="Longest side in tokens; 0 takes any.")
@click.option("--normalise", is_flag=True, help="Write compatible characters, quotes and dashes in one way each.")
@click.option("--across-files", "across", is_flag=True, help="Leave out what another file had before, too.")
@click.option(
    "--detect", metavar="all|TAGS",
    help="Leave out pairs of which a side is in another language, told among these, such as de,en,fr.",
)  # fmt: skip
@click.option(
    "--exclude", multiple=True, metavar="TASK|FILE", shell_complete=_complete.declared("task"),
    help="Leave out texts that stand in this test set; repeatable.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that work at once.")
@_options.options_group(_options.data, _options.include, _options.trust)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object on stdout.")
def command(
    corpus: tuple[Path, ...],
    output: Path | None,
    encoder: str,
    prompt: Any,
    jobs: int,
    languages: str | None,
    only: str | None,
    detect: str | None,
    trust_remote_code: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Clean and tokenise CORPUS, files and folders of translations, into PREPARED, which `distill --corpus` takes.

    Read are en-de.tsv, en-de.parquet and Moses pairs such as WikiMatrix.de-en.de, packed with gzip or Zstandard, too. A
    command that was stopped goes on when it is given again. What is left out is counted in PREPARED/report.md.

    \b
    Examples:
      metasearch prepare ~/data/opus -o prepared --encoder runs/assistant --jobs 8 --across-files
      metasearch prepare ~/data/parallel -o prepared --exclude lareqa --exclude tatoeba --data ~/data --detect all
    """
    if output is None:
        raise ConfigError("say where the corpus goes with -o DIR")

    from metasearch.cli._progress import ProgressBar
    from metasearch.config.run import EncoderConfig
    from metasearch.pipelines.prepare.begin import prepare_corpus
    from metasearch.pipelines.prepare.report import summary, totals

    names = ("pivot", "max_lines", "max_chars", "max_tokens", "normalise")
    settings = {name: flags.pop(name) for name in names}
    settings |= {"languages": listed("languages", languages), "only": listed("only", only)}
    told = listed("detect", detect)
    ref = EncoderConfig(name=encoder, prompts=prompt, trust_remote_code=trust_remote_code)
    with ProgressBar("prepare") as bar:
        manifest = prepare_corpus(corpus, output, ref, settings, detect=told, processes=jobs, callback=bar, **flags)
    if as_json:
        click.echo(json.dumps({"corpus": str(output), **totals(manifest)}, ensure_ascii=False))
        return
    click.echo(
        f"{summary(manifest)}\nreport: {output / 'report.md'}\ntrain: metasearch distill --corpus {quoted(output)}"
    )
