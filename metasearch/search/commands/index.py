"""`metasearch index`: documents become an index to search."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result, reject_unused_options
from metasearch.config.run import DEFAULT_ENCODER
from metasearch.errors import ConfigError, quoted
from metasearch.search.settings import IndexSettings, RankingSettings, without_password


@_options.command(
    "index",
    sections={
        "Documents": "output root site chunk_tokens chunk_overlap titles column keep_repeated explain strict drop",
        "Languages": "language detect language_from_filename translations",
        "Encoder": "encoder prompt neutral precision device trust_remote_code",
        "Ranking, kept in the index": "hybrid expand balance by",
        "Databases": "to",
    },
)
@click.argument("documents", nargs=-1, type=click.Path(path_type=Path))
@_options.output("Folder of the index.", metavar="INDEX")
@_options.encoder(f"Built-in name, local folder or hub name; by default the index's, or {DEFAULT_ENCODER}.")
@_options.prompts
@_options.settings(IndexSettings, unset=True)
@_options.settings(RankingSettings)
@click.option(
    "--root", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Folder to which paths are relative, also after a move; by default the named one.",
)  # fmt: skip
@click.option(
    "--site", metavar="URL",
    help="Address of the root, for addresses of hits; none removes it.",
)  # fmt: skip
@click.option(
    "--to",
    metavar="ADDRESS",
    help="Copy to a database, such as postgresql://HOST/DATABASE/TABLE.",
)
@click.option(
    "--explain",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Print the blocks of a document, kept or dropped.",
)
@click.option("--strict", is_flag=True, help="Fail on unreadable documents, rows and languages.")
@click.option("--prune", "drop", is_flag=True, help="Remove documents that were not named, even if they exist.")
@_options.options_group(_options.device, _options.trust, _options.as_json("the counts"))
def command(
    documents: tuple[Path, ...], output: Path | None, explain: Path | None, as_json: bool, **asked: Any
) -> None:
    """Index exactly these DOCUMENTS in INDEX: files and folders of txt, md, html, pdf, docx, and of rows.

    A second call encodes new texts and removes deleted ones; a stopped call continues. Rows are in jsonl, csv, tsv,
    parquet or arrow files with a column `text`, and may have `title`, `language` and fields for `search --where`.
    Unreadable documents and rows are skipped with a warning. Options of ranking, --root and --site work without
    DOCUMENTS, too.

    \b
    Examples:
      metasearch index help-pages -o help.index
      metasearch index help-pages news.jsonl --encoder runs/maml/model --neutral -o all.index
      metasearch index faq.csv --column answer --language de -o faq.index
      metasearch index help-pages -o help.index --to postgresql://localhost/shop/help
      metasearch index -o help.index --balance --site https://help.example.org/
      metasearch index help-pages --explain help-pages/de/faq.html
    """
    from metasearch.runs.progress import ProgressBar
    from metasearch.search.indexes import index_documents

    settings, ranking = _options.given(IndexSettings, asked), _options.given(RankingSettings, asked)
    if explain:
        _explain(explain, documents, settings)
        return
    if output is None:
        raise ConfigError("Missing option '-o' / '--output': the folder of the index")
    if not documents:
        _change(output, ranking, as_json, **asked)
        return
    both = [*_options.settings_in(IndexSettings), *_options.settings_in(RankingSettings)]
    own = {_options.parameter_name(*setting) for setting in both} | {"prompt"}
    how = {name: value for name, value in asked.items() if name not in own}
    with ProgressBar("index") as bar:
        done = index_documents(documents, output, asked=settings, callback=bar, ranking=ranking, **how)
    if as_json:
        click.echo(json.dumps({"index": str(output), **asdict(done)}, ensure_ascii=False))
        return
    languages = ", ".join(f"{tag} {count:,}" for tag, count in done.languages.items())
    unread = f"{done.skipped:,} documents, {done.skipped_rows:,} rows; kept as indexed before: {done.kept:,} documents"
    skipped = f"skipped: {unread}\n" if done.skipped or done.kept or done.skipped_rows else ""
    sent = done.copied
    copied = f"copied: {sent.sent:,} passages sent, {sent.deleted:,} deleted\n" if sent else ""
    neutral = f", language-neutral ({', '.join(done.neutral)})" if done.neutral else ""
    low = f" in {done.precision}" if done.precision != "float32" else ""
    click.echo(
        f"encoder: {done.encoder}{low}{neutral}\n"
        f"documents: {done.documents:,} ({done.added:,} new, {done.changed:,} changed, {done.dropped:,} gone)\n"
        f"{skipped}passages: {done.passages:,} ({done.encoded:,} encoded now)\n"
        f"texts by language: {languages or 'none'}\n"
        f'{copied}search: metasearch search {quoted(without_password(asked["to"] or str(output)))} "..."'
    )


def _explain(file: Path, documents: Sequence[Path], asked: dict[str, Any]) -> None:
    """Print the blocks of a document, beside the documents that were named or all in its folder."""
    from metasearch.config import yaml
    from metasearch.search.documents.read import explain
    from metasearch.search.query.passages import reading

    settings = yaml.check(asked, IndexSettings, "settings of the index")
    for line in explain(documents or [file.parent], file, reading(settings)):
        click.echo(line)


def _change(
    output: Path, ranking: dict[str, Any], as_json: bool, root: Path | None, site: str | None, **rest: Any
) -> None:
    """Change facts of an index that need no documents."""
    if not ranking and root is None and site is None:
        raise ConfigError("name DOCUMENTS, or what to change: --hybrid, --expand, --balance, --by, --root or --site")
    changing = {parameter.name for parameter in click.get_current_context().command.params}
    changing -= {"documents", "output", "as_json", "root", "site", *RankingSettings.model_fields}
    reject_unused_options(*sorted(filter(None, changing)), why="no document is read; name DOCUMENTS")

    from metasearch.search.indexes import change_index

    now = change_index(output, ranking, root, site)
    print_result(as_json, {"index": str(output), **now}, "\n".join(f"{name}: {value}" for name, value in now.items()))
