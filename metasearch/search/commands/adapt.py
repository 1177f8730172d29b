"""`metasearch adapt`: learn a query adapter of an index from few labels, or choose the one in use."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result, reject_unused_options
from metasearch.config.run import TuneConfig
from metasearch.errors import ConfigError


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
@_options.options_group(_options.device, _options.trust, _options.as_json("the adapter"))
def command(
    index: str, labels: str | None, base: Sequence[str], listed: bool, use: str | None, unused: bool, as_json: bool,
    **asked: Any,
) -> None:  # fmt: skip
    """Learn a map of query vectors from LABELS, so that INDEX is searched better. No document is encoded again.

    LABELS is a file as for `metasearch tune --documents`, with the columns query and page. The adapter is scored on
    held-out folds of the labels. `search` and `serve` use it if it is significantly better than the search without it,
    and harms no language significantly. If it reads answers, it must also be better than with shuffled labels. It stays
    in the index in any case.

    \b
    Examples:
      metasearch adapt help.index labels.csv --name clicks
      metasearch adapt help.index --list
      metasearch adapt help.index --use clicks
      metasearch adapt help.index --none
    """
    if (labels is not None) + listed + (use is not None) + unused != 1:
        raise ConfigError("name one of LABELS, --list, --use NAME and --none")
    if labels is None:
        changing = {parameter.name for parameter in click.get_current_context().command.params}
        changing -= {"index", "labels", "listed", "use", "unused", "as_json"}
        reject_unused_options(*sorted(filter(None, changing)), why="nothing is learned; name LABELS")
        _choose(index, listed, use, as_json)
        return

    from metasearch.search.tune.adapt.job import adapt

    found = adapt(index, labels, bases=base, **asked)
    how = "the index is searched with it" if found.kept else f"not used; --use {found.facts.name} searches with it"
    text = f"{found.report}\nadapter: {found.facts.name} ({how})"
    print_result(
        as_json, {"index": index, **asdict(found.facts), "figures": [each.row for each in found.figures]}, text
    )


def _choose(index: str, listed: bool, use: str | None, as_json: bool) -> None:
    """List the adapters of an index, or change the one in use."""
    from metasearch.search.index.stores import index_folder
    from metasearch.search.indexes import list_adapters, use_adapter

    folder = index_folder(index)
    if not listed:
        use_adapter(folder, use)
    found, now = list_adapters(folder)
    tree = {"index": index, "in_use": now, "adapters": [asdict(each) for each in found]}
    lines = [
        f"{'*' if each.name == now else ' '} {each.name}  {each.date}  {each.labels} labels  {each.result}"
        for each in found
    ]
    text = "\n".join(lines) or "no adapters"
    print_result(as_json, tree, text if listed else f"adapter: {now or 'none'}")
