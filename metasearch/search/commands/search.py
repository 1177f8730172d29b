"""`metasearch search`: find passages in an index that answer a question."""

import codecs
import itertools
import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import reject_unused_options
from metasearch.config.rerank import RerankSettings
from metasearch.data.formats.blank import blank
from metasearch.errors import ConfigError, DataError
from metasearch.search.settings import SearchSettings

if TYPE_CHECKING:
    from metasearch.search.index.base import Hit
    from metasearch.search.query.searcher import Searcher

# Control characters, line ends, marks that embed or override a direction, and halves of characters. Joiners and soft
# hyphens, which show nothing either, are part of how words are written.
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

log = logging.getLogger(__name__)

_AT_ONCE = 64
"""Piped queries that are answered together."""


@_options.command("search")
@click.argument("index", type=click.Path())
@click.argument("query", required=False)
@_options.settings(SearchSettings, first=("top_k", "languages"))
@_options.settings(RerankSettings)
@_options.options_group(_options.moved_encoder, _options.device, _options.query_precision, _options.trust)
@click.option("--json", "as_json", is_flag=True, help="Print each query and its hits as one JSON object a line.")
def command(
    index: str, query: str | None, encoder: str | None, device: Any, precision: Any, trust_remote_code: bool,
    as_json: bool, **asked: Any,
) -> None:  # fmt: skip
    """Search INDEX, made by `metasearch index`, for passages that answer QUERY, in any language.

    INDEX is a folder, also of `metasearch tune`, or an address in a database, such as
    postgresql://localhost/shop/help. It says whether --hybrid, --expand and --balance are on, and a line names them;
    --no-balance overrides it.

    Without QUERY, each line of the standard input is a query; a terminal asks for them.

    \b
    Examples:
      metasearch search help.index "Where is the key?"
      metasearch search help.index "Wo ist der Schlüssel?" --language en,fr --top-k 3
      metasearch search shop.index "light rain coat" --where "price<80" --where brand=Nordlicht
      metasearch search help.index --json < questions.txt
      metasearch search help.index "Where is the key?" --rerank BAAI/bge-reranker-v2-m3
    """
    given = [_check_query(query)] if query is not None else None
    reranking = _options.validate(RerankSettings, asked, "search")
    reranked = reranking.top if reranking.model else 0
    settings = _options.validate(SearchSettings, {**asked, "rerank": reranked}, "search")
    if not reranking.model:
        reject_unused_options("rerank_top", why="nothing is reranked; add --rerank MODEL")

    from metasearch.search.indexes import open_searcher

    searcher = open_searcher(index, device, encoder, trust_remote_code, reranking.model, precision)
    for queries in [given] if given else _read_queries():
        found = searcher.answer(queries, settings)
        for each, hits in zip(queries, found, strict=True):
            show = _json if as_json else _format_hits
            click.echo(show(each, hits, searcher, titled=query is None))
        _warn(searcher, queries)


def _warn(searcher: "Searcher", queries: Sequence[str]) -> None:
    """Log queries that the encoder truncates or cannot read."""
    from metasearch.encoders.unknown_languages import warn_of_unreadable
    from metasearch.search.query.searcher import QUERY

    limit = searcher.encoder.limit(QUERY)
    for query, cut in zip(queries, searcher.encoder.is_truncated(queries, QUERY), strict=True):
        if cut:
            shown = _printable(query)[:40]
            log.warning("the query '%s…' was truncated at %d tokens", shown, limit)
        warn_of_unreadable(searcher.encoder, query)


def _json(query: str, hits: Sequence["Hit"], searcher: "Searcher", titled: bool) -> str:
    rows = []
    for hit in hits:
        facts = {name: getattr(hit.passage, name) for name in ("language", "file", "line", "heading", "anchor", "text")}
        more = {"path": searcher.path_of(hit.passage).as_posix(), "places": hit.places}
        more |= {"languages": hit.languages, "url": hit.url, "fields": hit.passage.fields}
        more["translations"] = [
            {
                "language": each.passage.language, "file": each.passage.file,
                "path": searcher.path_of(each.passage).as_posix(), "url": each.url,
            }
            for each in hit.translations
        ]  # fmt: skip
        rows.append({"score": round(hit.score, 6), **facts, **more})
    return json.dumps({"query": query, "hits": rows}, ensure_ascii=False)


def _format_hits(query: str, hits: Sequence["Hit"], searcher: "Searcher", titled: bool) -> str:
    from metasearch.search.index.places import shown

    lines = [f"{query}\n"] if titled else []
    for number, hit in enumerate(hits, 1):
        passage = hit.passage
        more = f" and {hit.places - 1:,} more place{'s' * (hit.places > 2)}" if hit.places > 1 else ""
        anchor = f"#{passage.anchor}" if passage.anchor else f":{passage.line}"
        place = f"{_printable(hit.url or shown(searcher.path_of(passage)) + anchor)}{more}"
        lines.append(f"{number:>2}  {hit.score:.3f}  {', '.join(hit.languages)}  {place}")
        lines += [f"    {_printable(passage.heading)}"] if passage.heading else []
        lines += [click.wrap_text(_printable(line), 100, "    ", "    ") for line in passage.text.splitlines() if line]
        lines.append("")
    counts = Counter(tag for hit in hits for tag in hit.languages)
    found = ", ".join(f"{tag} {count}" for tag, count in counts.most_common())
    return "\n".join([*lines, f"languages of the hits: {found or 'no hits'}"])


def _printable(text: str) -> str:
    """Return a text without control characters for terminals and changes of direction: a document may hold anything."""
    return _COMMANDS.sub(" ", text)


def _check_query(text: str) -> str:
    """Return a query without white space at its ends; `ConfigError` where it is blank or not UTF-8."""
    if blank(text):
        raise ConfigError("the query is blank")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # A byte that is no UTF-8 reaches a program as a lone surrogate (PEP 383).
        raise ConfigError(f"the query is not UTF-8: byte {ord(text[error.start]) & 0xFF:#04x}") from None
    return text.strip()


def _read_queries() -> Iterator[list[str]]:
    """Yield queries from standard input: in batches, or at a terminal one by one, until Ctrl-D."""
    if sys.stdin is None:  # its descriptor is closed
        raise ConfigError("no query given, and standard input is closed")
    terminal, waiting = sys.stdin.isatty(), list[str]()
    for number in itertools.count(1):
        if terminal:
            click.echo("query: ", nl=False, err=True)
        line = sys.stdin.buffer.readline()
        try:
            encoding = sys.stdin.encoding if terminal else "utf-8"
            text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode(encoding).strip()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            name = error.encoding.upper()
            raise DataError(f"line {number} of the standard input is not {name}: byte {byte:#04x}") from None
        if not blank(text):
            waiting.append(text)
        if waiting and (terminal or not line or len(waiting) == _AT_ONCE):
            yield waiting
            waiting = []
        if not line:
            return
