"""`metasearch search`: the passages of an index that answer a question."""

import json
import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options
from metasearch.cli._queries import asked_queries, check_query
from metasearch.cli._settings_options import options_group

if TYPE_CHECKING:
    from metasearch.retrieval.index.hit import Hit
    from metasearch.retrieval.search.searcher import Searcher

# Control characters, line ends, marks that embed or override a direction, and halves of characters. Joiners and soft
# hyphens, which show nothing either, are part of how words are written.
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

log = logging.getLogger(__name__)


@click.command("search", short_help="Search an index in any language.")
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("query", required=False)
@click.option("--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Hits for each query.")
@click.option("--language", "languages", multiple=True, metavar="TAG", help="Of the hits, such as de; repeatable.")
@click.option("--hybrid", is_flag=True, help="Rank by the query's words (BM25), too, and fuse both rankings.")
@click.option(
    "--expand", is_flag=True, help="Score passages with their like in other languages: for documents with translations."
)
@click.option("--balance", is_flag=True, help="Measure scores from the best of their language: for answers in several.")
@_options.moved_encoder
@options_group(_options.device, _options.trust)
@click.option("--json", "as_json", is_flag=True, help="Print each query and its hits as one JSON object a line.")
def command(
    index: Path,
    query: str | None,
    top: int,
    languages: tuple[str, ...],
    hybrid: bool,
    expand: bool,
    balance: bool,
    encoder: str | None,
    device: Any,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Search INDEX, which `metasearch index` made, for passages that answer QUERY, in whatever languages they are.

    Without QUERY each line of the standard input is one, and on a terminal you are asked for them.

    \b
    Examples:
      metasearch search help.index "Where is the key?"
      metasearch search help.index "Wo ist der Schlüssel?" --language en --language fr --top 3
      metasearch search help.index --json < questions.txt
    """
    given = [check_query(query)] if query is not None else None

    from metasearch.pipelines.search import open_searcher

    searcher = open_searcher(index, device, encoder, trust_remote_code)
    for queries in [given] if given else asked_queries():
        how = {"hybrid": hybrid, "expand": expand, "balance": balance}
        found = searcher.search(queries, top=top, languages=languages, **how)
        for each, hits in zip(queries, found, strict=True):
            click.echo(_json(each, hits) if as_json else _format_hits(each, hits, titled=query is None))
        _say_cut(searcher, queries)


def _say_cut(searcher: "Searcher", queries: Sequence[str]) -> None:
    """Say of which queries the encoder leaves the end unread."""
    from metasearch.retrieval.search.searcher import QUERY

    limit = searcher.encoder.limit(QUERY)
    for query, cut in zip(queries, searcher.encoder.is_truncated(queries, QUERY), strict=True):
        if cut:
            shown = _printable(query)[:40]
            log.warning("the query '%s…' was searched for by its first %d tokens; its end was not read", shown, limit)


def _json(query: str, hits: Sequence["Hit"]) -> str:
    rows = [
        {
            "score": round(hit.score, 6),
            "language": hit.passage.language,
            "file": hit.passage.file,
            "line": hit.passage.line,
            "text": hit.passage.text,
            "places": hit.places,
        }
        for hit in hits
    ]
    return json.dumps({"query": query, "hits": rows}, ensure_ascii=False)


def _format_hits(query: str, hits: Sequence["Hit"], titled: bool) -> str:
    """Return hits as they are read, the best first, and which languages they are in."""
    lines = [f"{query}\n"] if titled else []
    for number, hit in enumerate(hits, 1):
        passage = hit.passage
        more = f" and {hit.places - 1:,} more places" if hit.places > 1 else ""
        lines.append(
            f"{number:>2}  {hit.score:.3f}  {passage.language}  {_printable(passage.file)}:{passage.line}{more}"
        )
        lines += [click.wrap_text(_printable(line), 100, "    ", "    ") for line in passage.text.splitlines() if line]
        lines.append("")
    counts = Counter(hit.passage.language for hit in hits)
    shown = ", ".join(f"{tag} {count}" for tag, count in counts.most_common())
    return "\n".join([*lines, f"languages of the hits: {shown or 'no hits'}"])


def _printable(text: str) -> str:
    """Return a text without what would command a terminal or turn its writing round: a document may hold anything."""
    return _COMMANDS.sub(" ", text)
