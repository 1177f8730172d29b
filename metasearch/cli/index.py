"""`metasearch index`: documents become an index to search."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.config.index import IndexSettings
from metasearch.errors import quoted


@_options.command("index")
@click.argument("documents", nargs=-1, required=True, type=click.Path(path_type=Path))
@_options.output("Folder of the index.", required=True, metavar="INDEX")
@_options.encoder("Built-in name, local folder or hub name; by default the index's, or `mini`.")
@_options.prompts
@_options.settings(IndexSettings, unset=True)
@click.option(
    "--to",
    metavar="ADDRESS",
    help="Copy the index to a database, such as qdrant://HOST:PORT/COLLECTION; see `metasearch ls stores`.",
)
@click.option("--expand", is_flag=True, help="Copy expanded vectors, too, for `metasearch search --expand`; with --to.")
@click.option(
    "--vectors", type=click.Path(path_type=Path), metavar="FILE",
    help="Write passages and float16 vectors to a .parquet file, for another database.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Fail on unreadable documents, rows and languages, and list them all.")
@click.option(
    "--prune", "drop", is_flag=True, help="Remove documents that were not named from the index, even if they exist."
)
@_options.options_group(_options.device, _options.trust, _options.as_json("the counts"))
def command(documents: tuple[Path, ...], output: Path, as_json: bool, **asked: Any) -> None:
    """Index exactly these DOCUMENTS in INDEX: files and folders of txt, md, html, pdf, docx, and of rows.

    A second call encodes new texts, removes deleted ones, and keeps those that only moved. A stopped call continues
    when you give it again. Rows are in jsonl, csv, tsv, parquet or arrow files. They have a column `text`, and may have
    `title`, `language` and further fields, which `metasearch search --where` filters by. An unreadable document of a
    folder is skipped with a warning, or keeps its former passages; an unreadable row is skipped.

    \b
    Examples:
      metasearch index help-pages -o help.index
      metasearch index help-pages news.jsonl --encoder runs/maml/model --neutral -o all.index
      metasearch index faq.csv --column answer --language de -o faq.index
      metasearch index help-pages -o help.index --to qdrant://localhost:6333/help
      metasearch index help-pages -o help.index --vectors help.parquet
    """
    from metasearch.retrieval.indexes import index_documents
    from metasearch.runs.progress import ProgressBar

    settings = _options.given(IndexSettings, asked)
    own = {_options.parameter_name(*setting) for setting in _options.settings_in(IndexSettings)} | {"prompt"}
    how = {name: value for name, value in asked.items() if name not in own}
    with ProgressBar("index") as bar:
        done = index_documents(documents, output, asked=settings, callback=bar, **how)
    if as_json:
        click.echo(json.dumps({"index": str(output), **asdict(done)}, ensure_ascii=False))
        return
    languages = ", ".join(f"{tag} {count:,}" for tag, count in done.languages.items())
    unread = f"{done.skipped:,} documents, {done.skipped_rows:,} rows; kept as indexed before: {done.kept:,} documents"
    skipped = f"skipped: {unread}\n" if done.skipped or done.kept or done.skipped_rows else ""
    sent = done.copied
    copied = f"copied: {sent.sent:,} passages sent, {sent.deleted:,} deleted\n" if sent else ""
    vectors = f"vectors: {quoted(asked['vectors'])}\n" if asked["vectors"] else ""
    click.echo(
        f"documents: {done.documents:,} ({done.added:,} new, {done.changed:,} changed, {done.dropped:,} gone)\n"
        f"{skipped}passages: {done.passages:,} ({done.encoded:,} encoded now)\n"
        f"texts by language: {languages or 'none'}\n"
        f'{copied}{vectors}search: metasearch search {quoted(asked["to"] or output)} "..."'
    )
