"""`metasearch card`: the card and the licence of a model."""

from pathlib import Path

import click

from metasearch.cli import _options


@_options.command("card")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN_OR_MODEL")
@click.option("--licence", "--license", metavar="ID", help="Licence of the model as a whole, such as apache-2.0.")
@click.option("--write", is_flag=True, help="Write the card to the model's folder instead of printing it.")
def command(folder: Path, licence: str | None, write: bool) -> None:
    """Print the model card of RUN_OR_MODEL, optionally with another licence.

    `metasearch train`, `distill`, `compress` and `neutralise` write a card beside each model, as README.md. Its licence
    is `unknown` until you set one. The card lists the licences of the data and of the base encoder; you decide which
    one follows from them.

    \b
    Examples:
      metasearch card runs/shop
      metasearch card runs/shop --licence cc-by-sa-4.0 --write
    """
    from metasearch.io import atomic_write
    from metasearch.pipelines.card_file import licensed_card

    path, card = licensed_card(folder, licence)
    if write:
        atomic_write(path, str(card))
        click.echo(f"card: {path}")
    else:
        click.echo(str(card), nl=False)
