"""`metasearch index`: documents become an index to search."""

import json
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.cli._settings import listed
from metasearch.errors import ConfigError, quoted


@_options.command("index")
@click.argument("documents", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="INDEX",
    help="Folder of the index.",
)  # fmt: skip
@click.option(
    "--encoder", shell_complete=_complete.encoders,
    help="Built-in name, local folder or hub name; by default the index's, or `mini`.",
)  # fmt: skip
@_options.prompts
@click.option(
    "--length", type=click.IntRange(min=3), metavar="TOKENS",
    help="Of the longest passage; by default 128, or fewer where the encoder reads no more.",
)  # fmt: skip
@click.option(
    "--overlap", type=click.IntRange(min=0), metavar="TOKENS", help="With which a passage may begin again; default 0."
)
@click.option("--language", metavar="TAG", help="Of documents that do not tell it, such as de.")
@click.option(
    "--detect", metavar="all|TAGS", help="Tell the language of texts that still have none, among such as de,en,fr."
)
@click.option(
    "--names/--no-names", default=None, help="Let names such as faq.de.md and de/faq.md tell the language; on."
)
@click.option("--titles/--no-titles", default=None, help="Put a document's title before each of its passages; on.")
@click.option("--column", metavar="NAME", help="Column with the text in jsonl, csv and tsv; by default text.")
@click.option("--neutral/--no-neutral", default=None, help="Take what languages differ in out of the vectors; off.")
@click.option(
    "--storage", type=click.Choice(["int8", "bits"]),
    help="What a search reads: int8, or for millions of passages bits, after which the best are scored with int8.",
)  # fmt: skip
@click.option(
    "--strict", is_flag=True, help="Fail on documents, rows and languages that cannot be read; list them all."
)
@click.option("--drop", is_flag=True, help="Let documents that were not named leave the index, even if still there.")
@_options.options_group(_options.device, _options.trust)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object on stdout.")
def command(
    documents: tuple[Path, ...],
    output: Path | None,
    encoder: str | None,
    strict: bool,
    drop: bool,
    device: Any,
    trust_remote_code: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Make INDEX one of exactly these DOCUMENTS: files and folders of txt, md, html, jsonl, csv and tsv.

    Called again, it encodes what is new, and what is gone is found no more; texts that only moved cost nothing. A call
    that is stopped loses nothing that was encoded: the next one goes on. Rows of jsonl, csv and tsv have a column
    `text`, and may have `title` and `language`. A document of a folder that cannot be read is skipped with a warning,
    or stays as it was indexed before; a row that cannot be read is skipped.

    \b
    Examples:
      metasearch index help-pages -o help.index
      metasearch index help-pages news.jsonl --encoder runs/maml/model --neutral -o all.index
      metasearch index faq.csv --column answer --language de -o faq.index
    """
    if output is None:
        raise ConfigError("say where the index goes with -o DIR")

    from metasearch.cli._progress import ProgressBar
    from metasearch.pipelines.search import index_documents

    settings = _settings(**asked)
    with ProgressBar("index") as bar:
        done = index_documents(documents, output, encoder, settings, device, trust_remote_code, drop, strict, bar)
    if as_json:
        from dataclasses import asdict

        click.echo(json.dumps({"index": str(output), **asdict(done)}, ensure_ascii=False))
        return
    languages = ", ".join(f"{tag} {count:,}" for tag, count in done.languages.items())
    unread = f"{done.skipped:,} documents, {done.skipped_rows:,} rows; kept as indexed before: {done.kept:,} documents"
    skipped = f"skipped: {unread}\n"
    click.echo(
        f"documents: {done.documents:,} ({done.added:,} new, {done.changed:,} changed, {done.dropped:,} gone)\n"
        f"{skipped if done.skipped or done.kept or done.skipped_rows else ''}"
        f"passages: {done.passages:,} ({done.encoded:,} encoded now)\n"
        f"texts by language: {languages or 'none'}\n"
        f'search: metasearch search {quoted(output)} "..."'
    )


def _settings(prompt: dict[str, str], detect: str | None, **asked: Any) -> dict[str, Any]:
    """Return what was asked of the index's settings; what was not keeps the index's values."""
    given = {key: value for key, value in asked.items() if value is not None}
    if prompt:
        given["prompts"] = prompt
    if detect is not None:
        given["detect"] = detect if detect == "all" else listed("detect", detect)
    return given
