"""`metasearch adapt`: learn a query adapter of an index from few labels, or choose the one in use."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result, reject_unused_options
from metasearch.errors import ConfigError
from metasearch.search.settings import TuneConfig


@_options.command("adapt")
@click.argument("index", type=click.Path())
@click.argument("labels", required=False)
@click.option("--name", metavar="NAME", help="Name of the adapter; by default adapter-1, adapter-2 and so on.")
@_options.columns
@_options.setting(TuneConfig, "folds")
@_options.setting(TuneConfig, "same_page")
@_options.setting(TuneConfig, "base")
@_options.moved_encoder
@click.option("--list", "listed", is_flag=True, help="List the adapters of the index.")
@click.option("--use", metavar="NAME", help="Search with this adapter of the index.")
@click.option("--none", "unused", is_flag=True, help="Search without an adapter.")
@click.option("--forget-queries", "forgotten", is_flag=True, help="Search without the queries that were learned from.")
@_options.options_group(_options.device, _options.trust, _options.as_json("the adapter"))
def command(
    index: str, labels: str | None, base: Sequence[str], listed: bool, use: str | None, unused: bool, forgotten: bool,
    as_json: bool, **asked: Any,
) -> None:  # fmt: skip
    """Learn a map of query vectors from LABELS, so that INDEX is searched better. No document is encoded again.

    LABELS is a file as for `metasearch tune --documents`, with the columns query and page. The adapter is scored on
    held-out folds of the labels. `search` and `serve` use it if it is significantly better than the search without it,
    and harms no language significantly. If it reads answers, it must also be better than with shuffled labels. It stays
    in the index in any case.

    LABELS may also have queries alone: a .txt file with one a line, or a table with the column query. Then the centre
    of queries moves to theirs, which needs five queries or more and no label. The index keeps a number and a sum.

    \b
    Examples:
      metasearch adapt help.index labels.csv --name clicks
      metasearch adapt help.index queries.txt
      metasearch adapt help.index --list
      metasearch adapt help.index --use clicks
      metasearch adapt help.index --none
    """
    if (labels is not None) + listed + (use is not None) + unused + forgotten != 1:
        raise ConfigError("name one of LABELS, --list, --use NAME, --none and --forget-queries")
    if labels is None:
        changing = {parameter.name for parameter in click.get_current_context().command.params}
        changing -= {"index", "labels", "listed", "use", "unused", "forgotten", "as_json"}
        reject_unused_options(*sorted(filter(None, changing)), why="nothing is learned; name LABELS")
        _choose(index, listed, use, forgotten, as_json)
        return

    from metasearch.data.label_rows import read_queries
    from metasearch.search.tune.adapt.job import adapt

    queries = read_queries(labels, asked["columns"] or {})
    if queries is not None:
        _learn(index, queries, as_json, **asked)
        return
    found = adapt(index, labels, bases=base, **asked)
    how = "the index is searched with it" if found.kept else f"not used; --use {found.facts.name} searches with it"
    text = f"{found.report}\nadapter: {found.facts.name} ({how})"
    print_result(
        as_json, {"index": index, **asdict(found.facts), "figures": [each.row for each in found.figures]}, text
    )


def _learn(
    index: str, queries: Sequence[str], as_json: bool, encoder: str | None, device: Any, trust_remote_code: bool,
    **rest: Any,
) -> None:  # fmt: skip
    reject_unused_options("name", "folds", "same_page", "base", why="there are no labels; they are for adapters")

    from metasearch.search.index.stores import index_folder
    from metasearch.search.indexes import learn_queries

    learned = learn_queries(index_folder(index), queries, device, encoder, trust_remote_code)
    tree = {"index": index, "queries": len(queries), "total": learned.count, "date": learned.date}
    print_result(as_json, tree, f"queries learned from: {len(queries):,} now, {learned.count:,} in all")


def _choose(index: str, listed: bool, use: str | None, forgotten: bool, as_json: bool) -> None:
    """List what an index learned, or change the adapter in use, or forget queries."""
    from metasearch.search.index.local import LocalStore
    from metasearch.search.index.stores import index_folder
    from metasearch.search.indexes import forget_queries, list_adapters, use_adapter

    folder = index_folder(index)
    if forgotten:
        forget_queries(folder)
    elif not listed:
        use_adapter(folder, use)
    found, now = list_adapters(folder)
    learned = LocalStore.open(folder).plan.learned
    tree: dict[str, Any] = {"index": index, "in_use": now, "adapters": [asdict(each) for each in found]}
    tree["queries"] = {"count": learned.count, "date": learned.date} if learned else None
    lines = [
        f"{'*' if each.name == now else ' '} {each.name}  {each.date}  {each.labels} labels  {each.result}"
        for each in found
    ]
    queries = f"queries learned from: {learned.count:,}, the last on {learned.date}" if learned else ""
    text = "\n".join(filter(None, [*lines, queries])) or "no adapters"
    print_result(as_json, tree, text if listed else "no queries" if forgotten else f"adapter: {now or 'none'}")
