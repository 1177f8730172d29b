"""`metasearch ls`: what there is."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from metasearch.cli import _options
from metasearch.config import registry

if TYPE_CHECKING:
    from metasearch.config.library import Library

KINDS = ("tasks", "modes", "recipes", "distillations", *registry.KINDS)


@click.command("ls", short_help="What there is: tasks, modes, recipes, learners.")
@click.argument("kind", required=False, metavar="[KIND]", type=click.Choice(KINDS))
@_options.include
def command(kind: str | None, include: Sequence[str]) -> None:
    """List what there is, or one KIND of it.

    KIND is tasks, modes, recipes, distillations, learners, losses, metrics, readers, translators, encoders (the
    built-in ones) or sections (of reports).

    \b
    Example:
      metasearch ls modes
    """
    from metasearch.config.library import Library

    library = Library(include)
    for shown in (kind,) if kind else KINDS:
        click.echo(f"{shown}:")
        entries = list(_entries(library, shown))
        width = max((len(name) for name, _ in entries), default=0)
        for name, text in entries:
            click.echo(f"  {name.ljust(width)}  {text}")
        if shown == "encoders":
            click.echo("  Any sentence-transformers or transformers checkpoint is one, too, by hub name or folder.")


def _entries(library: "Library", kind: str) -> Iterator[tuple[str, str]]:
    if kind in registry.KINDS:
        yield from ((name, registry.summary(kind, name)) for name in registry.names(kind))
        return
    single = kind.removesuffix("s")
    for name in library.names(single):
        yield name, getattr(library, single)(name).description
